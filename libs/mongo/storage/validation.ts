/** The `validator` of a collection: which documents may be written. */
import { calculateObjectSize, type Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { compileFilter, type Filter } from '../query/filter.ts';
import { brokenRules, compileSchema } from '../query/json-schema.ts';
import { type Collation, readCollation } from '../values/collations.ts';
import { isDocument } from '../values/field-paths.ts';

const LEVELS = ['off', 'strict', 'moderate'];
const ACTIONS = ['error', 'warn'];
/** Operators that need an index or run scripts. */
const NOT_ALLOWED = ['$near', '$nearSphere', '$geoNear', '$text', '$where'];

/** Maximum bytes of error details. */
const MAX_DETAILS_BYTES = 2 ** 20;

/** By the collection's options, which are a new object after a change. */
const compiled = new WeakMap<Document, Filter>();

/** The validator options of a command. Throws CommandError if invalid. */
export function readValidator(command: Document, collation: Collation | null): Document {
  const { validator, validationLevel: level, validationAction: action } = command;
  if (validator !== undefined) {
    if (!isDocument(validator))
      throw new CommandError(
        'TypeMismatch',
        "BSON field 'validator' is the wrong type, expected type 'object'",
      );
    assertAllowed(validator);
    compileFilter(validator, { collation });
  }
  assertOneOf('validationLevel', level, LEVELS);
  assertOneOf('validationAction', action, ACTIONS);
  return {
    ...(validator === undefined ? {} : { validator }),
    ...(level === undefined ? {} : { validationLevel: level }),
    ...(action === undefined ? {} : { validationAction: action }),
  };
}

function assertOneOf(name: string, value: unknown, values: readonly string[]): void {
  if (value === undefined || values.includes(String(value))) return;
  throw new CommandError('BadValue', `Enumeration value '${String(value)}' for field '${name}' is not valid`);
}

function assertAllowed(value: unknown): void {
  if (Array.isArray(value)) for (const each of value) assertAllowed(each);
  if (!isDocument(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (NOT_ALLOWED.includes(name))
      throw new CommandError('QueryFeatureNotAllowed', `${name} is not allowed in collection validators`);
    if (name !== '$jsonSchema') assertAllowed(inner);
  }
}

/**
 * Throws CommandError if the validator refuses a document. `before`: its earlier state; undefined
 * for a new one. A validator that only warns refuses nothing.
 */
export function assertValid(options: Document, document: Document, before?: Document): void {
  const { validator, validationLevel: level = 'strict', validationAction: action = 'error' } = options;
  if (level === 'off' || action === 'warn') return;
  let test = compiled.get(options);
  if (test === undefined) {
    test = compileFilter(validator, { collation: readCollation(options.collation) });
    compiled.set(options, test);
  }
  if (test(document) || (level === 'moderate' && before !== undefined && !test(before))) return;
  const details = whyNot(validator, document, readCollation(options.collation));
  const isTooLong = calculateObjectSize(details) > MAX_DETAILS_BYTES;
  const told = isTooLong ? { reason: 'the detailed error is too large', truncated: true } : details;
  const errInfo = { failingDocumentId: document._id, details: told };
  throw new CommandError('DocumentValidationFailure', 'Document failed validation', { errInfo });
}

/** The terms of a validator that a document violates. */
function whyNot(validator: Document, document: Document, collation: Collation | null): Document {
  const clauses = Object.entries(validator).flatMap(([name, operand], index) => {
    if (compileFilter({ [name]: operand }, { collation })(document)) return [];
    return [{ index, details: detailsOf(name, operand, document) }];
  });
  const [only, ...others] = clauses;
  if (only !== undefined && others.length === 0) return only.details;
  return { operatorName: '$and', clausesNotSatisfied: clauses };
}

function detailsOf(name: string, operand: unknown, document: Document): Document {
  if (name === '$jsonSchema')
    return { operatorName: name, schemaRulesNotSatisfied: brokenRules(compileSchema(operand), document) };
  const [first = ''] = isDocument(operand) ? Object.keys(operand) : [];
  const operatorName = name.startsWith('$') ? name : first.startsWith('$') ? first : '$eq';
  return { operatorName, specifiedAs: { [name]: operand }, reason: 'expression did not match' };
}
