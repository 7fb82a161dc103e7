/**
 * The process with one tenant's open documents: everything that a driver sends is parsed here. The
 * first call is `open`, or `check` for an archive from a tenant.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Document } from 'bson';
import {
  CommandError,
  decodeCommand,
  decodeDocument,
  encodeReply,
  Malformed,
  readDocuments,
  readSections,
  waits,
} from '../../../../../libs/mongo/index.ts';
import { noteDamage } from '../../../../../libs/sqlite/index.ts';
import type { Table } from '../../../../databases/engine.ts';
import { systemClock } from '../../../../platform/clock.ts';
import type { Handler, SizeLimit } from '../../../engine-children/child-call.ts';
import { type OpenHead, OverTime, runChild } from '../../../engine-children/child-main.ts';
import { queryReply } from '../../../engine-children/json-answers.ts';
import { commandOf, describeCollection, describeView, resultOf } from '../query-results.ts';
import { checkHandler, copyHandler } from './child-archive.ts';
import { changeHandler, insertHandler, scanHandler } from './child-rows.ts';
import { TenantDocuments } from './tenant-documents.ts';

/** The code MaxTimeMSExpired. */
const TIME_EXPIRED = 50;
/** A whole catalog in one batch. */
const ALL = { batchSize: 100_000 };

runChild({
  handlers: { check: checkHandler },
  open: ({ file, copy, name, limits, ...sizeLimit }: OpenHead) => {
    const tenant = new TenantDocuments({ file, name, sizeLimit, limits });
    return {
      handlers: {
        command: commandHandler(tenant),
        query: queryHandler(tenant),
        change: changeHandler(tenant),
        scan: scanHandler(tenant),
        insert: insertHandler(tenant),
        tables: tablesHandler(tenant),
        tests: testsHandler(tenant),
        copy: copyHandler(() => [{ name, file }, ...tenant.tests.list()], copy),
        size_limit: async ({ head }) => {
          const { limits, ...sizeLimit } = head as unknown as SizeLimit & Pick<OpenHead, 'limits'>;
          Object.assign(tenant, { sizeLimit, limits });
          return { head: {} };
        },
      },
      flush: () => tenant.durable(),
      figures: () => ({ ...tenant.counters, sizeBytes: tenant.sizeBytes }),
      whenIdle: () => tenant.shrink(),
      close: () => tenant.close(),
    };
  },
  errorName: (error) => (error instanceof CommandError ? error.codeName : null),
});

/** A command as its driver sent it: the sections of an OP_MSG. The answer's body is the reply. */
function commandHandler(tenant: TenantDocuments): Handler {
  return async ({ body }) => {
    try {
      const reply = tenant.run(read(body), { readOnly: false });
      if (reply.ok === 0) noteDamage(reply);
      return { head: { waitMs: waits.get(reply) ?? null }, body: encodeReply(reply) };
    } catch (error) {
      if (error instanceof CommandError) return { head: {}, body: encodeReply(error.reply()) };
      if (!(error instanceof Malformed)) throw error;
      return { head: {}, body: encodeReply(new CommandError(22, error.message).reply()) };
    }
  };
}

function read(bytes: Buffer) {
  const { body, sequences } = readSections(bytes);
  const lists = sequences.map(({ identifier, bytes: list }) => ({
    identifier,
    documents: readDocuments(list),
  }));
  return decodeCommand(body, lists);
}

/** Runs one command for the console's query page. */
function queryHandler(tenant: TenantDocuments): Handler {
  return async ({ head }) => {
    const { statement, readOnly, timeoutMs, ...bounds } = head as unknown as {
      readonly statement: Document;
      readonly readOnly: boolean;
      readonly timeoutMs: number;
      readonly maxRows: number;
      readonly skip?: number;
      readonly maxBytes: number;
      readonly isExact?: boolean;
    };
    const command = commandOf(statement, bounds);
    command.$db ??= tenant.name;
    const begun = systemClock.monotonic();
    const reply = tenant.run(command, { readOnly, withinMs: timeoutMs });
    // The command's own limit, maxTimeMS, is not meant here; it is shorter then.
    const isOverTime = reply.code === TIME_EXPIRED && systemClock.monotonic() - begun >= timeoutMs;
    if (isOverTime) throw new OverTime(String(reply.errmsg));
    const result = resultOf(command, reply, bounds);
    return queryReply({ ...result, rows: result.rows.map((row) => JSON.stringify(row)) });
  };
}

/** The databases for tests. The answer's body is JSON: their names and sizes. */
function testsHandler({ tests }: TenantDocuments): Handler {
  return async () => {
    const found = tests.list().map(({ name, sizeBytes }) => ({ name, sizeBytes }));
    return { head: {}, body: Buffer.from(JSON.stringify(found)) };
  };
}

/** The collections and their indexes. The answer's body is JSON: a list of Table. */
function tablesHandler(tenant: TenantDocuments): Handler {
  const ask = (command: Document) => tenant.run({ ...command, $db: tenant.name }, { readOnly: true });
  const list = (command: Document): Document[] =>
    (ask({ ...command, cursor: ALL }).cursor?.firstBatch ?? []).map((found: Uint8Array | Document) =>
      found instanceof Uint8Array ? decodeDocument(found) : found,
    );
  return async ({ signal }) => {
    const tables: Table[] = [];
    for (const { name, type } of list({ listCollections: 1 })) {
      if (type === 'view') tables.push(describeView(String(name)));
      else
        tables.push(describeCollection(String(name), list({ listIndexes: name }), ask({ collStats: name })));
      await turn();
      signal.throwIfAborted();
    }
    tables.sort((one, other) => (one.name < other.name ? -1 : 1));
    return { head: {}, body: Buffer.from(JSON.stringify(tables)) };
  };
}
