/** Errors of commands as MongoDB clients see them. */
import type { Document } from 'bson';

/** Codes that this engine uses; numbers and names are MongoDB's. */
const CODES = {
  BadValue: 2,
  GraphContainsCycle: 5,
  UnknownError: 8,
  FailedToParse: 9,
  Unauthorized: 13,
  TypeMismatch: 14,
  Overflow: 15,
  InvalidLength: 16,
  AuthenticationFailed: 18,
  IllegalOperation: 20,
  NoReplicationEnabled: 76,
  OperationFailed: 96,
  InvalidBSON: 22,
  NamespaceNotFound: 26,
  IndexNotFound: 27,
  PathNotViable: 28,
  ConflictingUpdateOperators: 40,
  LockTimeout: 24,
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
  WriteConflict: 112,
  ConflictingOperationInProgress: 117,
  DocumentValidationFailure: 121,
  ViewDepthLimitExceeded: 165,
  CommandNotSupportedOnView: 166,
  OptionNotSupportedOnView: 167,
  InvalidPipelineOperator: 168,
  CannotIndexParallelArrays: 171,
  QueryPlanKilled: 175,
  CappedPositionLost: 136,
  InvalidIndexSpecificationOption: 197,
  CannotBuildIndexKeys: 201,
  ConversionFailure: 241,
  QueryFeatureNotAllowed: 224,
  TransactionTooOld: 225,
  NoSuchTransaction: 251,
  TransactionCommitted: 256,
  OperationNotSupportedInTransaction: 263,
  QueryExceededMemoryLimitNoDiskUseAllowed: 292,
  DataCorruptionDetected: 301,
  BSONObjectTooLarge: 10334,
  APIVersionError: 322,
  APIStrictError: 323,
  UnsupportedOpQueryCommand: 352,
  TemporarilyUnavailable: 365,
  DuplicateKey: 11000,
  Interrupted: 11601,
  OutOfDiskSpace: 14031,
} as const;

const NAMES = new Map<number, string>(Object.entries(CODES).map(([name, code]) => [code, name]));

export type CodeName = keyof typeof CODES;

export class CommandError extends Error {
  readonly code: number;
  readonly codeName: string;
  /** Besides code and message: `keyPattern` and `keyValue` of a duplicate. */
  readonly more: Document;

  constructor(code: CodeName | number, message: string, more: Document = {}) {
    super(message);
    this.code = typeof code === 'number' ? code : CODES[code];
    // A server does the same for unnamed codes.
    this.codeName = NAMES.get(this.code) ?? `Location${this.code}`;
    this.more = more;
  }

  /** The error reply. */
  reply(): Document {
    return { ok: 0, errmsg: this.message, code: this.code, codeName: this.codeName, ...this.more };
  }
}
