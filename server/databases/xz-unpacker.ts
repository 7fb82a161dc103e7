/** Unpacks xz with the `xz` program: Node has no decoder, and a WebAssembly one would need a thread. */
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { Duplex } from 'node:stream';
import { findHostProgram, startProgram } from '../platform/host/host-programs.ts';
import { LoadFailed } from './engine.ts';

/** Enough for every level of xz, whose largest dictionary has 64 MiB. */
const WORDS = ['--decompress', '--stdout', '--threads=1', '--memlimit-decompress=256MiB'];
/** The user and group `nobody`, which can access nothing else. */
const NOBODY = 65_534;
const MOST_SAID = 500;

/** A stream from compressed to plain bytes. Throws LoadFailed if the host has no `xz`. */
export async function xzUnpacker(program: string | null = findHostProgram('xz')): Promise<Duplex> {
  if (program === null)
    throw new LoadFailed(
      'The file is packed with xz, and the host has no program for that: unpack it first (`unxz FILE`), or ' +
        'ask the operator for the package xz-utils',
    );
  return streamOf(await start(program));
}

/** Root of a container may not be able to change users. */
async function start(program: string): Promise<ChildProcess> {
  const options: SpawnOptions = { stdio: 'pipe', env: { LC_ALL: 'C' }, cwd: '/' };
  if (process.getuid?.() !== 0) return startProgram(program, WORDS, options);
  const user = { uid: NOBODY, gid: NOBODY };
  return startProgram(program, WORDS, { ...options, ...user }).catch((error) => {
    if (error.code !== 'EPERM' && error.code !== 'EINVAL') throw error;
    return startProgram(program, WORDS, options);
  });
}

function streamOf(child: ChildProcess): Duplex {
  const { stdin, stdout, stderr } = child;
  let said = '';
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(0, MOST_SAID);
  });
  const stream = new Duplex({
    // The exit code explains a failure better than the failed write.
    write: (piece, _, done) => void stdin?.write(piece, () => done()),
    final: (done) => void stdin?.end(() => done()),
    read: () => void stdout?.resume(),
    destroy: (error, done) => {
      child.kill('SIGKILL');
      done(error);
    },
  });
  stdin?.on('error', () => {});
  stdout?.on('data', (piece: Buffer) => {
    if (!stream.push(piece)) stdout.pause();
  });
  child.once('close', (code) => {
    if (code === 0) stream.push(null);
    else stream.destroy(new Error(said.trim().replace(/^.*?\(stdin\): /, '') || 'it ended early'));
  });
  return stream;
}
