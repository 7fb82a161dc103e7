/** What a command fails with, as a client of MongoDB sees it. */
import type { Document } from 'bson';

/** Those that this engine answers with; numbers and names are MongoDB's. */
const CODES = {
  BadValue: 2,
  FailedToParse: 9,
  Unauthorized: 13,
  TypeMismatch: 14,
  Overflow: 15,
  InvalidLength: 16,
  IllegalOperation: 20,
  NamespaceNotFound: 26,
  IndexNotFound: 27,
  PathNotViable: 28,
  ConflictingUpdateOperators: 40,
  CursorNotFound: 43,
  NamespaceExists: 48,
  MaxTimeMSExpired: 50,
  DollarPrefixedFieldName: 52,
  InvalidIdField: 53,
  NotSingleValueField: 54,
  CommandNotFound: 59,
  ImmutableField: 66,
  CannotCreateIndex: 67,
  InvalidOptions: 72,
  InvalidNamespace: 73,
  IndexOptionsConflict: 85,
  IndexKeySpecsConflict: 86,
  CommandNotSupported: 115,
  DocumentValidationFailure: 121,
  CannotIndexParallelArrays: 171,
  QueryExceededMemoryLimitNoDiskUseAllowed: 292,
  BSONObjectTooLarge: 10334,
  DuplicateKey: 11000,
  OutOfDiskSpace: 14031,
} as const;

export type CodeName = keyof typeof CODES;

export class CommandError extends Error {
  readonly code: number;
  readonly codeName: string;
  /** Beside code and message: `keyPattern` and `keyValue` of a duplicate. */
  readonly more: Document;

  /** A number where MongoDB has no name for the code. */
  constructor(code: CodeName | number, message: string, more: Document = {}) {
    super(message);
    this.code = typeof code === 'number' ? code : CODES[code];
    this.codeName = typeof code === 'number' ? `Location${code}` : code;
    this.more = more;
  }

  /** The reply that says so. */
  reply(): Document {
    return { ok: 0, errmsg: this.message, code: this.code, codeName: this.codeName, ...this.more };
  }
}
