/** nginx with sendfile, in the foreground, from its own folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../test/harness/free-port.ts';

const PROGRAM = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'].find((path) =>
  existsSync(path),
);

export const NGINX_MISSING = 'nginx is not installed: apt-get install nginx-light';

function configuration(port: number, folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${join(folder, name)};`,
  );
  return [
    'daemon off; master_process off; worker_processes 1;',
    `pid ${join(folder, 'nginx.pid')};`,
    'error_log stderr warn;',
    'events { worker_connections 256; }',
    'http {',
    ...temporary,
    '  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;',
    `  server { listen 127.0.0.1:${port}; root ${join(folder, 'files')}; }`,
    '}',
  ].join('\n');
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

export class Nginx {
  readonly #child: ChildProcess;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
    const kill = () => child.kill();
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
  }

  /** Serves `content` as /object; undefined when nginx is not installed. */
  static async start(folder: string, content: Uint8Array): Promise<Nginx | undefined> {
    if (PROGRAM === undefined) return undefined;
    // Started by root without a master, nginx keeps its user and can read its folder.
    mkdirSync(join(folder, 'files'), { recursive: true });
    writeFileSync(join(folder, 'files', 'object'), content);
    const port = await freePort();
    const file = join(folder, 'nginx.conf');
    writeFileSync(file, configuration(port, folder));
    const child = spawn(PROGRAM, ['-p', folder, '-c', file], { stdio: ['ignore', 'ignore', 'inherit'] });
    for (let attempt = 0; !(await answers(port)); attempt++) {
      if (child.exitCode !== null || attempt === 200) throw new Error('nginx did not start');
      await sleep(25);
    }
    return new Nginx(child, port);
  }

  async stop(): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exit;
  }
}
