/** Update operators, applied to one field of a document. */
import { type Document, Long, Timestamp } from 'bson';
import { CommandError } from '../../command-error.ts';
import type { Collation } from '../../values/collations.ts';
import { documentOf, entriesOf, setField } from '../../values/field-order.ts';
import { isDocument } from '../../values/field-paths.ts';
import { compareValues, textKeyOf } from '../../values/key-order.ts';
import {
  asInteger,
  calculate,
  isNumber,
  isTrue,
  type Operation,
  plainNumber,
  wholeNumber,
} from '../../values/numbers.ts';
import { numberTypeOf, typeNameOf } from '../../values/type-names.ts';
import { compileFilter, compileValue, holdsOperators, isOfDocuments } from '../filter.ts';
import { readSort, sortOrder } from '../sorting.ts';
import type { Slot } from './update-paths.ts';

interface OperatorContext {
  /** For messages. */
  readonly path: string;
  readonly options: { readonly now: Date; readonly collation?: Collation | null };
}

type Apply = (slot: Slot) => void;
type Compile = (operand: unknown, context: OperatorContext) => Apply;

function read({ parent, name }: Slot): unknown {
  return Object.hasOwn(parent, name) ? (parent as Document)[name] : undefined;
}

function write({ parent, name }: Slot, value: unknown): void {
  setField(parent as Document, name, value);
}

/** Writes the result computed from the present value (undefined if missing). */
const change =
  (work: (value: unknown) => unknown): Apply =>
  (slot) =>
    write(slot, work(read(slot)));

const set: Compile = (operand) => (slot) => write(slot, structuredCopy(operand));

/** Copied, because one operand may be used in many documents and fields. */
function structuredCopy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(structuredCopy);
  if (!isDocument(value)) return value;
  return documentOf(entriesOf(value).map(([name, inner]) => [name, structuredCopy(inner)]));
}

function arithmetic(word: string, operation: Operation): Compile {
  return (operand, { path }) => {
    if (!isNumber(operand))
      throw new CommandError(
        'TypeMismatch',
        `Cannot ${word} with non-numeric argument: {${path}: ${String(operand)}}`,
      );
    return change((value) => {
      if (value === undefined) return operation === 'multiply' ? calculate('multiply', operand, 0) : operand;
      if (!isNumber(value))
        throw new CommandError(
          'TypeMismatch',
          `Cannot ${word} the field '${path}' of the type ${typeNameOf(value)}`,
        );
      const result = calculate(operation, value, operand);
      const isWhole = [value, operand].every((each) => ['int', 'long'].includes(numberTypeOf(each)));
      if (isWhole && !(result instanceof Long) && numberTypeOf(result) === 'double')
        throw new CommandError('BadValue', `Cannot ${word} the field '${path}': integer overflow`);
      return result;
    });
  };
}

const BITS: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

const bit: Compile = (operand, { path }) => {
  const isWhole = (value: unknown): value is number | Long =>
    ['int', 'long'].includes(typeNameOf(value)) && isNumber(value);
  const refused = (why: string) => new CommandError('BadValue', why);
  if (!isDocument(operand) || Object.keys(operand).length === 0)
    throw refused(`$bit takes a document with 'and', 'or' or 'xor' for '${path}'`);
  const steps = Object.entries(operand).map(([name, mask]) => {
    const work = Object.hasOwn(BITS, name) ? BITS[name] : undefined;
    if (work === undefined)
      throw refused(`The $bit modifier only supports 'and', 'or', and 'xor', not '${name}'`);
    if (!isWhole(mask))
      throw refused(`The $bit modifier field must be an Integer(32/64 bit), not ${typeNameOf(mask)}`);
    return { work, mask };
  });
  return change((value = 0) => {
    if (!isWhole(value))
      throw refused(`Cannot apply $bit to a value of non-integral type: '${path}' is ${typeNameOf(value)}`);
    return steps.reduce<number | Long>((result, { work, mask }) => {
      const isLong = result instanceof Long || mask instanceof Long;
      return asInteger(work(wholeNumber(result) as bigint, wholeNumber(mask) as bigint), isLong) as
        | number
        | Long;
    }, value);
  });
};

function extreme(direction: number): Compile {
  return (operand, { options: { collation = null } }) =>
    change((value) =>
      value === undefined || direction * compareValues(operand, value, collation) > 0 ? operand : value,
    );
}

const unset: Compile = () => (slot) => {
  if (Array.isArray(slot.parent)) {
    if (Number(slot.name) < slot.parent.length) write(slot, null);
  } else delete slot.parent[slot.name];
};

const currentDate: Compile = (operand, { options: { now } }) => {
  const type = isDocument(operand) ? operand.$type : 'date';
  if (operand !== true && operand !== false && type !== 'date' && type !== 'timestamp')
    throw new CommandError('BadValue', "The '$type' string field is required to be 'date' or 'timestamp'");
  return change(() =>
    type === 'date' ? new Date(now) : new Timestamp({ t: Math.floor(Number(now) / 1000), i: 1 }),
  );
};

function listAt(value: unknown, operator: string, path: string): unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  const message = `The field '${path}' must be an array but is of type ${typeNameOf(value)} in document`;
  throw new CommandError(operator === '$pop' ? 'TypeMismatch' : 'BadValue', message);
}

/** `$push` and `$addToSet` take one value, or several with `$each`. */
function eachOf(operand: unknown, operator: string): unknown[] {
  if (!isDocument(operand) || !('$each' in operand)) return [operand];
  if (Array.isArray(operand.$each)) return operand.$each;
  throw new CommandError('BadValue', `The argument to $each in ${operator} must be an array`);
}

const push: Compile = (operand, { path, options: { collation = null } }) => {
  const added = eachOf(operand, '$push');
  const modifiers: Document = isDocument(operand) && '$each' in operand ? operand : {};
  const { $position: position, $slice: slice, $sort: sort } = modifiers;
  return change((value) => {
    let list = [...listAt(value, '$push', path)];
    const at = position === undefined ? list.length : plainNumber(position);
    list.splice(at, 0, ...added.map(structuredCopy));
    if (sort !== undefined) list = sortedList(list, sort, collation);
    if (slice === undefined) return list;
    const count = plainNumber(slice);
    return count < 0 ? list.slice(count) : list.slice(0, count);
  });
};

function sortedList(list: unknown[], sort: unknown, collation: Collation | null): unknown[] {
  if (!isDocument(sort)) return list.sort((a, b) => plainNumber(sort) * compareValues(a, b, collation));
  const { keyOf, compare } = sortOrder(readSort(sort), collation);
  const keyed = list.map((each) => ({ each, key: keyOf(isDocument(each) ? each : {}) }));
  return keyed.sort((one, other) => compare(one.key, other.key)).map(({ each }) => each);
}

const addToSet: Compile = (operand, { path, options: { collation = null } }) => {
  const added = eachOf(operand, '$addToSet');
  return change((value) => {
    const list = [...listAt(value, '$addToSet', path)];
    const keys = new Set(list.map((there) => textKeyOf(there, collation)));
    for (const each of added) {
      const key = textKeyOf(each, collation);
      if (!keys.has(key)) list.push(structuredCopy(each));
      keys.add(key);
    }
    return list;
  });
};

/** Removes elements that match the condition. */
const removing =
  (operator: string, path: string, goes: (value: unknown) => boolean): Apply =>
  (slot) => {
    const value = read(slot);
    if (value !== undefined)
      write(
        slot,
        listAt(value, operator, path).filter((each) => !goes(each)),
      );
  };

const pull: Compile = (operand, { path, options: { collation = null } }) => {
  const [first = ''] = isDocument(operand) ? Object.keys(operand) : [];
  if (isDocument(operand) && (!holdsOperators(operand) || isOfDocuments(first))) {
    const test = compileFilter(operand, { collation });
    return removing('$pull', path, (each) => isDocument(each) && test(each));
  }
  const test = compileValue(operand, { collation });
  return removing('$pull', path, (each) => test([each]));
};

const pullAll: Compile = (operand, { path, options: { collation = null } }) => {
  if (!Array.isArray(operand)) throw new CommandError('BadValue', '$pullAll requires an array argument');
  const gone = new Set(operand.map((each) => textKeyOf(each, collation)));
  return removing('$pullAll', path, (each) => gone.has(textKeyOf(each, collation)));
};

const pop: Compile = (operand, { path }) => {
  const end = plainNumber(operand);
  if (Math.abs(end) !== 1)
    throw new CommandError('FailedToParse', `$pop expects 1 or -1, found: ${String(operand)}`);
  return (slot) => {
    const value = read(slot);
    if (value === undefined) return;
    const list = listAt(value, '$pop', path);
    write(slot, end > 0 ? list.slice(0, -1) : list.slice(1));
  };
};

/** `$rename` affects two fields; only its operand is handled here. */
const rename: Compile = (operand, { path }) => {
  if (typeof operand === 'string' && operand !== path && isTrue(operand)) return () => {};
  throw new CommandError('BadValue', `$rename needs another name than ${path}`);
};

export const UPDATE_OPERATORS: Readonly<Record<string, Compile | undefined>> = {
  $set: set,
  $setOnInsert: set,
  $unset: unset,
  $inc: arithmetic('increment', 'add'),
  $mul: arithmetic('multiply', 'multiply'),
  $bit: bit,
  $min: extreme(-1),
  $max: extreme(1),
  $rename: rename,
  $currentDate: currentDate,
  $push: push,
  $addToSet: addToSet,
  $pull: pull,
  $pullAll: pullAll,
  $pop: pop,
};
