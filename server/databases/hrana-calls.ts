/** Calls of libSQL's drivers, which an engine answers: by HTTP and WebSocket. */
import type { EngineDatabase } from './engine.ts';

export interface HranaCalls {
  /** Throws AppError. */
  exchange(database: EngineDatabase, call: HranaCall): Promise<HranaReply>;
  /** The answer to a message; null: the message is not part of the protocol. Throws AppError. */
  receive(database: EngineDatabase, message: HranaMessage): Promise<Uint8Array | null>;
  /** Ends the streams of a closed WebSocket. */
  closeSocket(database: EngineDatabase, socket: string): Promise<unknown>;
}

export interface HranaCall {
  /** The path after the database: `v2/pipeline`. */
  readonly path: string;
  readonly body: Uint8Array;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface HranaReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
}

/** A message of a client's WebSocket. */
export interface HranaMessage {
  /** Identifies the connection. */
  readonly socket: string;
  readonly encoding: 'json' | 'protobuf';
  readonly body: Uint8Array;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}
