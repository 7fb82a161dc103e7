/** Hrana in Cloudlet's process: forwards requests to the database's process and streams the response back. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { EngineDatabase } from '../../../databases/engine.ts';
import type { HranaCall, HranaCalls, HranaMessage, HranaReply } from '../../../databases/hrana-calls.ts';
import { AppError } from '../../../platform/errors.ts';
import { displaced } from '../../engine-children/child-failures.ts';
import { type ChildAnswer, ChildGone } from '../../engine-children/tenant-child.ts';
import type { SqliteEngine } from './sqlite-engine.ts';

export function hranaOf(engine: Pick<SqliteEngine, 'call' | 'callIfThere'>): HranaCalls {
  return {
    exchange: (database, call) => exchangeHrana(engine, database, call),
    receive: (database, message) => receiveHrana(engine, database, message),
    closeSocket: (database, socket) => engine.callIfThere(database, { kind: 'hrana_close', socket }),
  };
}

/**
 * Answers a message of a WebSocket; null: the message does not belong to the protocol. Throws what
 * exchangeHrana() throws; the streams of the WebSocket are lost then.
 */
async function receiveHrana(
  engine: Pick<SqliteEngine, 'call'>,
  database: EngineDatabase,
  { socket, encoding, body, signal }: HranaMessage,
): Promise<Uint8Array | null> {
  try {
    const call = { kind: 'hrana_message', socket, encoding };
    const answer = await engine.call(database, call, { body, signal });
    return answer.head.isMessage === true ? answer.body : null;
  } catch (error) {
    throw said(error);
  }
}

/** Throws AppError `query_timeout`, `engine_unavailable`, and the engine's errors. */
export async function exchangeHrana(
  engine: Pick<SqliteEngine, 'call'>,
  database: EngineDatabase,
  { path, body, signal }: HranaCall,
): Promise<HranaReply> {
  let parts: PassThrough | undefined;
  const begun = Promise.withResolvers<HranaReply>();
  const onPart = async ({ head, body: part }: ChildAnswer) => {
    // The reader gets the error too.
    parts ??= new PassThrough().on('error', () => {});
    begun.resolve(replyOf(head, parts));
    if (!parts.write(part)) await once(parts, 'drain', { signal });
  };
  engine.call(database, { kind: 'hrana', path }, { body, signal, onPart }).then(
    (answer) => {
      begun.resolve(replyOf(answer.head, answer.body));
      parts?.end();
    },
    (error) => {
      begun.reject(said(error));
      parts?.destroy(error);
    },
  );
  return begun.promise;
}

function replyOf(head: ChildAnswer['head'], body: HranaReply['body']): HranaReply {
  return { status: Number(head.status), contentType: String(head.contentType), body };
}

function said(error: unknown): unknown {
  if (!(error instanceof ChildGone)) return error;
  if (error.why === 'displaced') return displaced(error);
  const undone = 'Open transactions in this database were rolled back';
  if (error.why === 'silent') {
    const detail = `A statement timed out and its database process was terminated. ${undone}`;
    return new AppError('query_timeout', detail, {
      hint: 'Query less data at once, or add an index',
      cause: error,
    });
  }
  return new AppError('engine_unavailable', `The database process exited during the request. ${undone}`, {
    hint: 'Check whether the last write succeeded, then retry',
    cause: error,
  });
}
