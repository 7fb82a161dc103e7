/** The variables of a command's expressions: `let`. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { isDocument } from '../values/field-paths.ts';
import { assertNoScripts, evaluate, evaluation } from './expressions.ts';

/** The values of `let`, by name: expressions without a document. Throws CommandError. */
export function readVariables(given: unknown): Document {
  if (given === undefined) return {};
  if (!isDocument(given))
    throw new CommandError('TypeMismatch', "BSON field 'let' is the wrong type, expected type 'object'");
  const names = Object.keys(given);
  if (names.length === 0) return {};
  names.forEach(assertName);
  assertNoScripts(given);
  assertConstant(given);
  const options = evaluation();
  return Object.fromEntries(names.map((name) => [name, evaluate({}, given[name], options) ?? null]));
}

function assertName(name: string): void {
  const [first = ''] = name;
  if (!/[a-z\P{ASCII}]/u.test(first))
    throw new CommandError(16867, `'${name}' starts with an invalid character for a user variable name`);
  if (/[^\w\P{ASCII}]/u.test(name))
    throw new CommandError(16868, `'${name}' contains an invalid character for a variable name`);
}

/** Document fields: no document exists when the values are computed. */
function assertConstant(value: unknown): void {
  if (Array.isArray(value)) for (const each of value) assertConstant(each);
  if (typeof value === 'string' && /^\$(?:[^$]|\$(?:ROOT|CURRENT)\b)/.test(value))
    throw new CommandError(
      4890500,
      'Command let Expression tried to access a field, but this is not allowed because command let expressions run before the query examines any documents.',
    );
  if (!isDocument(value)) return;
  for (const [name, inner] of Object.entries(value)) if (name !== '$literal') assertConstant(inner);
}
