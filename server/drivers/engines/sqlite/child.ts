/**
 * The process that has one tenant's file open and runs all of the tenant's SQL. The first call is `open`, or
 * `check` for an uploaded file.
 */
import type { DatabaseSync } from 'node:sqlite';
import { HRANA_LIMITS, HranaSessions, type Piece } from '../../../../libs/hrana/index.ts';
import { DurableLog, isShrinkable, shrinkFile, sqliteErrorName } from '../../../../libs/sqlite/index.ts';
import type { EngineLimits } from '../../../databases/engine.ts';
import { systemClock } from '../../../platform/clock.ts';
import { randomBase62 } from '../../../platform/ids.ts';
import { type Handler, type SizeLimit, TURN_MS } from '../../engine-children/child-call.ts';
import { type OpenHead, runChild } from '../../engine-children/child-main.ts';
import { checkHandler, copyHandler, sizeOf } from './child-copies.ts';
import { insertHandler } from './child-insert.ts';
import { changeHandler, queryHandler, scanHandler } from './child-query.ts';
import { tablesHandler } from './child-tables.ts';
import { TenantConnections } from './tenant-connections.ts';
import { numberOf } from './tenant-file.ts';

const BATON_CHARACTERS = 32;

runChild({
  handlers: { check: checkHandler },
  open: ({ file, copy, limits, ...sizeLimit }: OpenHead) => {
    const connections = new TenantConnections(file, sizeLimit, limits);
    const watcher = connections.openFor('own', true);
    const log = new DurableLog(file, watcher);
    return {
      handlers: handlersOf(connections, copy),
      flush: () => log.flush(),
      figures: () => ({ ...connections.counters, sizeBytes: sizeOf(watcher) }),
      whenIdle: () => shrink(connections, watcher),
      close: () => connections.closeAll(),
    };
  },
  errorName: sqliteErrorName,
});

function handlersOf(connections: TenantConnections, copy: string): Record<string, Handler> {
  return {
    query: queryHandler(connections),
    change: changeHandler(connections),
    scan: scanHandler(connections),
    insert: insertHandler(connections),
    tables: tablesHandler(connections),
    copy: copyHandler(connections, copy),
    ...hranaHandlers(connections),
    size_limit: async ({ head }) => {
      const { limits, ...sizeLimit } = head as unknown as SizeLimit & { limits: EngineLimits };
      connections.setSizeLimit(sizeLimit, limits);
      return { head: {} };
    },
  };
}

function shrink(connections: TenantConnections, watcher: DatabaseSync): void {
  const isUsed = connections.counters.connections > 0;
  const freePages = numberOf(watcher, 'PRAGMA freelist_count');
  if (!isShrinkable({ freePages, isUsed })) return;
  const database = connections.open();
  try {
    shrinkFile(database, freePages, systemClock.monotonic);
  } finally {
    connections.close(database);
  }
}

/**
 * `hrana`: answers `path` (without the database) and the body with `status` and `contentType` and the
 * response body, complete or in parts. `hrana_message`: answers a message of a WebSocket; `isMessage` is
 * false for anything else. `hrana_close`: the WebSocket is closed.
 */
function hranaHandlers(database: TenantConnections): Record<string, Handler> {
  const sessions = new HranaSessions({
    database,
    clock: systemClock,
    newBaton: () => randomBase62(BATON_CHARACTERS),
    turnMs: TURN_MS,
    limits: HRANA_LIMITS,
  });
  return {
    hrana: async ({ head: { path }, body, signal, part }) => {
      const answer = await sessions.handle({ path: String(path), body, signal });
      const head = { status: answer.status, contentType: answer.contentType };
      if (isPiece(answer.body)) return { head, body: bytesOf(answer.body) };
      for await (const piece of answer.body) await part(head, bytesOf(piece));
      return { head };
    },
    hrana_message: async ({ head: { socket, encoding }, body }) => {
      const message = { socket: String(socket), body } as const;
      const answer = await sessions.receive({
        ...message,
        encoding: encoding === 'protobuf' ? 'protobuf' : 'json',
      });
      const isMessage = answer !== null;
      return { head: { isMessage }, body: bytesOf(answer ?? '') };
    },
    hrana_close: async ({ head: { socket } }) => {
      sessions.closeSocket(String(socket));
      return { head: {} };
    },
  };
}

const isPiece = (body: Piece | AsyncIterable<Piece>): body is Piece =>
  typeof body === 'string' || body instanceof Uint8Array;

function bytesOf(piece: Piece): Buffer {
  if (typeof piece === 'string') return Buffer.from(piece);
  return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
}
