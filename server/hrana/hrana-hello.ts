/** The first messages of Hrana over WebSocket, in both encodings (HRANA_3_SPEC of libsql). */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

export type Encoding = 'json' | 'protobuf';

/** The sub-protocols on offer, the best first. */
export const SUB_PROTOCOLS: ReadonlyMap<string, Encoding> = new Map([
  ['hrana3-protobuf', 'protobuf'],
  ['hrana3', 'json'],
  ['hrana2', 'json'],
  ['hrana1', 'json'],
]);
const MAX_HELLO_BYTES = 16 * 1024;

/** The password in a client's `hello`, possibly empty; null: another message. */
export function readHello(bytes: Buffer, encoding: Encoding): string | null {
  if (bytes.length > MAX_HELLO_BYTES) return null;
  // Checked for each message; most are not a hello.
  if (encoding === 'json' && !bytes.includes('hello')) return null;
  try {
    return encoding === 'json' ? helloOfJson(bytes) : helloOfProtobuf(bytes);
  } catch {
    return null;
  }
}

function helloOfJson(bytes: Uint8Array): string | null {
  const { type, jwt } = JSON.parse(Buffer.from(bytes).toString('utf8')) ?? {};
  if (type !== 'hello') return null;
  return typeof jwt === 'string' ? jwt : '';
}

/** ClientMsg.hello has field number 1, as does HelloMsg.jwt in it. */
function helloOfProtobuf(bytes: Uint8Array): string | null {
  const hello = firstField(bytes);
  if (hello === null) return null;
  const jwt = firstField(hello);
  return jwt === null ? '' : Buffer.from(jwt).toString('utf8');
}

function firstField(bytes: Uint8Array): Uint8Array | null {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag();
    if (number === 1 && wire === WireType.LengthDelimited) return reader.bytes();
    reader.skip(wire, number);
  }
  return null;
}

/** The response to a valid `hello`. */
export function helloOk(encoding: Encoding): string | Uint8Array {
  if (encoding === 'json') return '{"type":"hello_ok"}';
  return new BinaryWriter().tag(1, WireType.LengthDelimited).fork().join().finish();
}

export function helloError(
  encoding: Encoding,
  error: { readonly message: string; readonly code: string },
): string | Uint8Array {
  if (encoding === 'json') return JSON.stringify({ type: 'hello_error', error });
  const { LengthDelimited } = WireType;
  const writer = new BinaryWriter().tag(2, LengthDelimited).fork().tag(1, LengthDelimited).fork();
  writer.tag(1, LengthDelimited).string(error.message).tag(2, LengthDelimited).string(error.code);
  return writer.join().join().finish();
}
