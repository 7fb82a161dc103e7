/** The name server of a private network: reads a question and writes its answer, RFC 1035. */

const HEADER_BYTES = 12;
const QUESTION_END_BYTES = 4;
const TYPE_A = 1;
const CLASS_IN = 1;
/** Names change with the running machines, so clients should ask again soon. */
const TTL_SECONDS = 5;
const RESPONSE = 0x8000;
const AUTHORITATIVE = 0x0400;
const RECURSION_DESIRED = 0x0100;
const RECURSION_AVAILABLE = 0x0080;
const RCODE = { none: 0, noSuchName: 3, refused: 5 } as const;
/** Maximum answers in one message of 512 bytes with the longest name. */
const MAX_ANSWERS = 10;

export interface Question {
  readonly id: number;
  readonly flags: number;
  /** Lower case, without the trailing dot. */
  readonly name: string;
  readonly wantsAddress: boolean;
  /** The question's own bytes. */
  readonly bytes: Buffer;
}

/** null: a message without an answer. */
export function questionIn(message: Buffer): Question | null {
  if (message.length < HEADER_BYTES || message.readUInt16BE(4) !== 1) return null;
  const flags = message.readUInt16BE(2);
  // A response, or an operation that is not a query.
  if ((flags & 0xf800) !== 0) return null;
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const bytes = message[at++];
    if (bytes === undefined || bytes > 63 || at + bytes > message.length || at > 255 + HEADER_BYTES)
      return null;
    if (bytes === 0) break;
    labels.push(message.toString('latin1', at, at + bytes).toLowerCase());
    at += bytes;
  }
  if (at + QUESTION_END_BYTES > message.length) return null;
  return {
    id: message.readUInt16BE(0),
    flags,
    name: labels.join('.'),
    wantsAddress: message.readUInt16BE(at) === TYPE_A && message.readUInt16BE(at + 2) === CLASS_IN,
    bytes: message.subarray(HEADER_BYTES, at + QUESTION_END_BYTES),
  };
}

/**
 * `found`: its addresses; null: no such name; `refused`: a name outside our networks, for which
 * clients ask their other name server.
 */
export function answerTo(question: Question, found: readonly number[] | null | 'refused'): Buffer {
  const addresses = Array.isArray(found) && question.wantsAddress ? found.slice(0, MAX_ANSWERS) : [];
  const code = found === 'refused' ? RCODE.refused : found === null ? RCODE.noSuchName : RCODE.none;
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(question.id, 0);
  const asked = question.flags & RECURSION_DESIRED;
  header.writeUInt16BE(RESPONSE | AUTHORITATIVE | RECURSION_AVAILABLE | asked | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  return Buffer.concat([header, question.bytes, ...addresses.map(recordOf)]);
}

function recordOf(address: number): Buffer {
  const record = Buffer.alloc(16);
  // The record has the name of the question.
  record.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  record.writeUInt16BE(TYPE_A, 2);
  record.writeUInt16BE(CLASS_IN, 4);
  record.writeUInt32BE(TTL_SECONDS, 6);
  record.writeUInt16BE(4, 10);
  record.writeUInt32BE(address, 12);
  return record;
}
