/** The Stable API: restrictions of commands that name a version of it. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';

/** Commands of version 1. */
const COMMANDS = new Set(
  (
    'abortTransaction aggregate authenticate bulkWrite collMod commitTransaction count create createIndexes delete ' +
    'drop dropDatabase dropIndexes endSessions explain find findAndModify getMore hello insert killCursors ' +
    'listCollections listDatabases listIndexes ping refreshSessions update saslStart saslContinue isMaster ismaster'
  ).split(' '),
);
/** Options that API version 1 does not include. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  find: [
    'awaitData',
    'max',
    'min',
    'noCursorTimeout',
    'oplogReplay',
    'returnKey',
    'showRecordId',
    'tailable',
  ],
  create: ['autoIndexId', 'capped', 'indexOptionDefaults', 'max', 'size', 'storageEngine'],
  aggregate: ['isMapReduceCommand'],
};
const STAGES = ['$currentOp', '$indexStats', '$listLocalSessions', '$listSessions', '$planCacheStats'];

/**
 * Throws CommandError for another version, and with `apiStrict` for commands and options outside
 * version 1.
 */
export function assertStableApi(command: Document): void {
  const { apiVersion, apiStrict, apiDeprecationErrors } = command;
  if (apiVersion === undefined) {
    const alone = [
      ['apiStrict', apiStrict],
      ['apiDeprecationErrors', apiDeprecationErrors],
    ].find(([, value]) => value !== undefined);
    if (alone === undefined) return;
    throw new CommandError('InvalidOptions', `Provided ${alone[0]} without passing apiVersion`);
  }
  if (apiVersion !== '1') throw new CommandError('APIVersionError', 'API version must be "1"');
  if (apiStrict !== true) return;
  const [name = ''] = Object.keys(command);
  if (!COMMANDS.has(name)) throw notStable(`the command ${name}`);
  const option = OPTIONS[name]?.find((each) => command[each] !== undefined && command[each] !== false);
  if (option !== undefined) throw notStable(`the option '${option}' of ${name}`);
  for (const stage of Array.isArray(command.pipeline) ? command.pipeline : []) assertStage(stage);
}

function assertStage(stage: unknown): void {
  if (typeof stage !== 'object' || stage === null) return;
  const found = STAGES.find((each) => each in stage);
  if (found !== undefined) throw notStable(`the stage ${found}`);
  const { $collStats: figures } = stage as Document;
  if (typeof figures !== 'object' || figures === null) return;
  if (Object.keys(figures).some((each) => each !== 'count')) throw notStable('$collStats but for its count');
}

function notStable(what: string): CommandError {
  return new CommandError(
    'APIStrictError',
    `Provided apiStrict:true, but ${what} is not in API Version 1. Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api`,
  );
}
