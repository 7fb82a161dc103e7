/** Calls of libSQL's drivers that an engine answers, by HTTP and WebSocket. */
import type { EngineDatabase } from '../../../databases/engine.ts';

export interface HranaCalls {
  exchange(database: EngineDatabase, call: HranaCall): Promise<HranaReply>;
  /** Answers a message of a WebSocket; null: the message does not belong to the protocol. */
  receive(database: EngineDatabase, message: HranaMessage): Promise<Uint8Array | null>;
  /** Ends the streams of a WebSocket. */
  closeSocket(database: EngineDatabase, socket: string): Promise<unknown>;
}

export interface HranaCall {
  readonly path: string;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface HranaReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
}

export interface HranaMessage {
  readonly socket: string;
  readonly encoding: 'json' | 'protobuf';
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}
