/** Bytes out of and into a guest, on a port of its own address or of QEMU's own forward. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export const SENDER_PORT = 8080;
export const RECEIVER_PORT = 443;
/** Makes a guest send endlessly on one port, and receive endlessly on the other after a greeting. */
export const BYTES_SCRIPT = `#!/bin/sh
nc -ll -p ${SENDER_PORT} -e cat /dev/zero >/dev/null 2>&1 &
nc -ll -p ${RECEIVER_PORT} -e sh -c 'echo ready; exec cat >/dev/null' >/dev/null 2>&1 &
`;

/** Until the buffers in between are full and both ends are at full speed. */
const WARM_MS = 500;
const CHUNK = Buffer.alloc(256 * 1024);

/** A connection on which the guest has sent data: its programs start a little after its SSH. */
async function talk({ host, port }: Endpoint): Promise<Socket> {
  for (let tries = 0; tries < 20; tries++) {
    const socket = connect(port, host);
    socket.on('error', () => {});
    const spoke = await new Promise<boolean>((resolve) => {
      socket.once('data', () => resolve(true));
      socket.once('close', () => resolve(false));
      setTimeout(() => resolve(false), 3000).unref();
    });
    if (spoke) return socket;
    socket.destroy();
    await sleep(100);
  }
  throw new Error(`the guest does not speak on port ${port}`);
}

/** Bytes per second, from the guest to us. */
export async function fromGuest(endpoint: Endpoint, ms: number): Promise<number> {
  const socket = await talk(endpoint);
  try {
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    return await rate(() => bytes, ms);
  } finally {
    socket.destroy();
  }
}

/** Bytes per second, from us to the guest. */
export async function toGuest(endpoint: Endpoint, ms: number): Promise<number> {
  const socket = await talk(endpoint);
  try {
    const fill = () => {
      while (socket.write(CHUNK));
    };
    socket.on('drain', fill);
    fill();
    return await rate(() => socket.bytesWritten - socket.writableLength, ms);
  } finally {
    socket.destroy();
  }
}

async function rate(count: () => number, ms: number): Promise<number> {
  await sleep(WARM_MS);
  const from = count();
  const began = performance.now();
  await sleep(ms);
  return ((count() - from) / (performance.now() - began)) * 1000;
}
