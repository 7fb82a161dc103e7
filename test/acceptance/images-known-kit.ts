/** A mirror of the publishers' images, as in a laboratory without the Internet; it can be hostile. */
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';
import { IMAGES, type WebServer, webServer } from './images-kit.ts';

export const KNOWN = `${IMAGES}/known`;

const DEBIAN = '/images/cloud.debian.org/images/cloud/trixie/latest';
const DEBIAN_FILE = 'debian-13-genericcloud-amd64.qcow2';
export const DEBIAN_PATH = `${DEBIAN}/${DEBIAN_FILE}`;
export const DEBIAN_SUMS = `${DEBIAN}/SHA512SUMS`;

export const sumOf = (algorithm: 'sha256' | 'sha512', bytes: Uint8Array) =>
  createHash(algorithm).update(bytes).digest('hex');

type Answer = (response: ServerResponse, range: string | undefined) => void;

export interface Mirror extends WebServer {
  /** Base URL, for CLOUDLET_IMAGE_MIRROR. */
  readonly base: string;
  /** Requested ranges, in order. */
  readonly ranges: (string | undefined)[];
  /** Replaces the answer for a path. */
  set(path: string, answer: Answer): void;
  /** Serves an image as Debian 13, with the checksums of its publisher. */
  offer(bytes: Uint8Array): void;
}

export async function openMirror(): Promise<Mirror> {
  const answers = new Map<string, Answer>();
  const ranges: (string | undefined)[] = [];
  const web = await webServer((request, response) => {
    const { range } = request.headers;
    if (request.url === DEBIAN_PATH) ranges.push(range);
    const answer = answers.get(request.url ?? '');
    if (answer === undefined) response.writeHead(404).end();
    else answer(response, range);
  });
  const set = (path: string, answer: Answer) => void answers.set(path, answer);
  const offer = (bytes: Uint8Array) => {
    const others = `${'0'.repeat(128)}  debian-13-genericcloud-amd64.raw\n`;
    set(DEBIAN_SUMS, (response) => response.end(`${others}${sumOf('sha512', bytes)}  ${DEBIAN_FILE}\n`));
    set(DEBIAN_PATH, (response, range) => sendRange(response, bytes, range));
  };
  return { ...web, base: `${web.url}/images`, ranges, set, offer };
}

/** Like static file servers. */
export function sendRange(response: ServerResponse, bytes: Uint8Array, range: string | undefined): void {
  const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
  const part = bytes.subarray(from);
  const headers = { 'content-length': String(part.length) };
  if (range === undefined) return void response.writeHead(200, headers).end(part);
  const place = `bytes ${from}-${bytes.length - 1}/${bytes.length}`;
  response.writeHead(206, { ...headers, 'content-range': place }).end(part);
}

/** Announces everything, but sends only a part. */
export function sendPart(response: ServerResponse, bytes: Uint8Array, to: number): void {
  response.writeHead(200, { 'content-length': String(bytes.length) });
  response.write(bytes.subarray(0, to));
}

export const fetchImage = (admin: CheckedClient, name = 'debian-13') =>
  admin.expect(201, `${KNOWN}/${name}`, { method: 'POST' });

/** The progress of an image once it has this many bytes. */
export const fetched = (admin: CheckedClient, imageId: string, bytes: number) =>
  eventually(`${bytes} bytes of the image`, async () => {
    const list = await admin.expect(200, IMAGES);
    const found = list.find(({ image_id }: { image_id: string }) => image_id === imageId);
    return found?.progress?.bytes >= bytes ? found.progress : null;
  });
