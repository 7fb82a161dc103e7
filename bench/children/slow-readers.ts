/** Downloads repeatedly on several connections, each at about the given speed, until it is stopped. */
import { connect } from 'node:net';
import { childInput } from '../child.ts';

interface Input {
  readonly port: number;
  readonly paths: readonly string[];
  readonly key: string;
  readonly bytesPerSecond: number;
}

const input = childInput<Input>();

/** One download. A paused socket fills the kernel's buffers, and then the server must wait. */
function download(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(input.port, '127.0.0.1');
    const began = performance.now();
    let received = 0;
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${input.key}\r\nConnection: close\r\n\r\n`,
    );
    socket.on('data', (part: Buffer) => {
      if (received === 0 && !part.toString('latin1', 0, 12).endsWith(' 200')) {
        socket.destroy(new Error(part.toString('latin1', 0, 300)));
      }
      received += part.length;
      const ahead = (received * 1000) / input.bytesPerSecond - (performance.now() - began);
      if (ahead <= 0) return;
      socket.pause();
      setTimeout(() => socket.resume(), ahead);
    });
    socket.on('error', reject);
    socket.on('end', resolve);
  });
}

async function repeat(path: string): Promise<never> {
  for (;;) await download(path);
}

console.log(0);
process.once('SIGTERM', () => process.exit());
await Promise.all(input.paths.map(repeat));
