/** The operations of a specification test, executed with MongoDB's own driver. */
import { type AbstractCursor, type Collection, type Db, type Document, MongoServerError } from 'mongodb';

export interface Operation {
  readonly name: string;
  readonly arguments?: Document;
}

/** Arguments that the driver takes by position; it takes all others as options. */
const COLLECTION: Readonly<Record<string, readonly string[]>> = {
  aggregate: ['pipeline'],
  bulkWrite: ['requests'],
  count: ['filter'],
  countDocuments: ['filter'],
  deleteMany: ['filter'],
  deleteOne: ['filter'],
  distinct: ['fieldName', 'filter'],
  estimatedDocumentCount: [],
  find: ['filter'],
  findOneAndDelete: ['filter'],
  findOneAndReplace: ['filter', 'replacement'],
  findOneAndUpdate: ['filter', 'update'],
  insertMany: ['documents'],
  insertOne: ['document'],
  replaceOne: ['filter', 'replacement'],
  updateMany: ['filter', 'update'],
  updateOne: ['filter', 'update'],
};
const DATABASE: typeof COLLECTION = {
  aggregate: ['pipeline'],
  createCollection: ['collection'],
  dropCollection: ['collection'],
};

/** Resolves with the driver's answer, for a cursor with all its documents. Rejects like the driver. */
export async function perform(target: Collection | Db, { name, arguments: args = {} }: Operation) {
  const positions = ('collectionName' in target ? COLLECTION : DATABASE)[name];
  if (positions === undefined) throw new Error(`the runner does not know the operation ${name}`);
  const { options: more, ...rest } = args;
  const options: Document = Object.assign({}, rest, more);
  for (const position of positions) delete options[position];
  if (typeof options.returnDocument === 'string')
    options.returnDocument = options.returnDocument.toLowerCase();
  const first = positions.map((position) => {
    return position === 'requests' ? args.requests.map(writeModel) : (args[position] ?? {});
  });
  const methods = target as unknown as Record<string, (...words: unknown[]) => unknown>;
  const answer = await methods[name]?.(...first, options);
  return isCursor(answer) ? answer.toArray() : answer;
}

/** Whether the error comes from the server, not from the driver itself. */
export function isOfServer(error: unknown): error is MongoServerError {
  return error instanceof MongoServerError;
}

/** Older tests have `{ name, arguments }`, newer ones the driver's arguments. */
function writeModel(request: Document): Document {
  return typeof request.name === 'string' ? { [request.name]: request.arguments } : request;
}

function isCursor(answer: unknown): answer is AbstractCursor {
  return typeof answer === 'object' && answer !== null && 'toArray' in answer;
}
