/** Reads the arguments of statements. */
import type { SQLInputValue } from 'node:sqlite';
import { HranaError } from './error.ts';
import type { JsonObject } from './format.ts';
import { isObject, listOf } from './json.ts';
import type { SqlStatement } from './sql.ts';

/** Arguments for StatementSync: named ones first, then positional ones. */
export type Bindings =
  | readonly [Record<string, SQLInputValue>, ...SQLInputValue[]]
  | readonly SQLInputValue[];

/** The arguments of each parameter. Throws HranaError if one is missing or superfluous. */
export function bindingsOf({ params }: SqlStatement, stmt: JsonObject): Bindings {
  const args = listOf(stmt.args, 'args').map(readValue);
  const named = readNamed(stmt.named_args);
  if (args.length > params.length) throw invalid(`${args.length} arguments for ${params.length} parameters`);
  const byName: Record<string, SQLInputValue> = {};
  const positional: SQLInputValue[] = [];
  let hasNames = false;
  params.forEach((name, index) => {
    const value = takeNamed(named, name) ?? { value: args[index] };
    if (value.value === undefined && name !== undefined) {
      throw invalid(`No argument for parameter ${name ?? `number ${index + 1}`}`);
    }
    if (name == null || name.startsWith('?')) {
      positional.push(value.value ?? null);
    } else {
      byName[name] = value.value ?? null;
      hasNames = true;
    }
  });
  const [unknown] = named.keys();
  if (unknown !== undefined) throw invalid(`The statement has no parameter ${unknown}`);
  return hasNames ? [byName, ...positional] : positional;
}

/** Named arguments may include the prefix or not. */
function takeNamed(
  named: Map<string, SQLInputValue>,
  name: string | null | undefined,
): { readonly value: SQLInputValue } | undefined {
  if (named.size === 0 || name == null) return undefined;
  for (const spelling of [name, name.slice(1)]) {
    const value = named.get(spelling);
    if (value === undefined) continue;
    named.delete(spelling);
    return { value };
  }
  return undefined;
}

function readNamed(given: unknown): Map<string, SQLInputValue> {
  const named = new Map<string, SQLInputValue>();
  for (const item of listOf(given, 'named_args')) {
    if (!isObject(item) || typeof item.name !== 'string') throw invalid('A named argument needs a name');
    named.set(item.name, readValue(item.value));
  }
  return named;
}

function readValue(given: unknown): SQLInputValue {
  const { type, value, base64 } = isObject(given) ? given : ({} as JsonObject);
  if (type === 'null') return null;
  if (type === 'integer') return readInteger(value);
  if (type === 'float' && typeof value === 'number') return value;
  if (type === 'text' && typeof value === 'string') return value;
  if (type === 'blob' && typeof base64 === 'string') return Buffer.from(base64, 'base64');
  if (type === 'blob' && value instanceof Uint8Array) return value;
  throw invalid(
    'Invalid argument: it needs a type (null, integer, float, text, blob) and the value of that type',
  );
}

function readInteger(value: unknown): bigint {
  if (typeof value === 'bigint') return value;
  const isNumber = typeof value === 'number' && Number.isSafeInteger(value);
  if (!isNumber && !(typeof value === 'string' && /^[+-]?\d{1,19}$/.test(value))) {
    throw invalid('The value of an integer must be a string of digits');
  }
  const integer = BigInt(typeof value === 'string' ? value.replace('+', '') : value);
  if (BigInt.asIntN(64, integer) !== integer) throw invalid(`${integer} does not fit into 64 bits`);
  return integer;
}

function invalid(message: string): HranaError {
  return new HranaError('ARGS_INVALID', message);
}
