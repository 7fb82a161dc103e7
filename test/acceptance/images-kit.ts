/** Shared by the tests of images. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';

export const IMAGES = '/api/admin/images';

/** A disk that prints a word on its serial port when booted. */
export function helloDisk(word = 'hello'): Buffer {
  const disk = Buffer.alloc(1024 * 1024);
  // mov dx, 0x3f8; then for each letter: mov al, letter; out dx, al; finally: hlt; jmp to the hlt.
  const letters = [...Buffer.from(`${word}\r\n`)].flatMap((letter) => [0xb0, letter, 0xee]);
  Buffer.from([0xba, 0xf8, 0x03, ...letters, 0xf4, 0xeb, 0xfd]).copy(disk);
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}

/** The answer to an upload. */
export function upload(admin: CheckedClient, bytes: Uint8Array, fields: Record<string, string> = {}) {
  const body = new FormData();
  for (const [field, value] of Object.entries(fields)) body.set(field, value);
  body.set('file', new Blob([bytes as Uint8Array<ArrayBuffer>]), 'disk.img');
  return admin.expect(201, `${IMAGES}/upload`, { body });
}

/** The image once its import has ended, successfully or not. */
export function settled(admin: CheckedClient, imageId: string) {
  return eventually('the end of the import', async () => {
    const list = await admin.expect(200, IMAGES);
    const image = list.find(({ image_id }: { image_id: string }) => image_id === imageId);
    return image?.state === 'importing' ? null : image;
  });
}

export interface WebServer {
  readonly url: string;
  readonly requests: string[];
  close(): void;
}

/** A separate server on 127.0.0.1. */
export async function webServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<WebServer> {
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(request.url ?? '');
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, requests, close };
}
