/** An S3 in its own process: unmodified s3rver, without the checks and faults of S3Fixture. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('./s3-server-child.ts', import.meta.url));
const BUCKET = 'tests';

export class S3Server {
  readonly #directory: string;
  #child: ChildProcess | null = null;
  #port = 0;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** `directory` holds the objects, and belongs to the caller. */
  static async start(directory: string): Promise<S3Server> {
    const server = new S3Server(directory);
    process.once('exit', () => server.#child?.kill('SIGKILL'));
    await server.start();
    return server;
  }

  /** Starts (again), with the same objects and port. */
  async start(): Promise<void> {
    const args = [CHILD, this.#directory, BUCKET, String(this.#port)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    const [text] = await once(child.stdout, 'data');
    this.#port = Number(String(text).trim());
    child.unref();
  }

  /** The URL for CLOUDLET_BLOBS_URL. */
  url(prefix: string): string {
    return `s3://S3RVER:S3RVER@127.0.0.1:${this.#port}/${BUCKET}/${prefix}?tls=off`;
  }

  /** Ends it immediately. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    child.ref();
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }
}
