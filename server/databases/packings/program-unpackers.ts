/** Unpacks xz and bzip2 with their programs: Node decodes neither, and WebAssembly would need a thread. */
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { Duplex } from 'node:stream';
import { findHostProgram, startProgram } from '../../platform/host/host-programs.ts';
import { LoadFailed } from '../engine.ts';

interface Unpacking {
  readonly program: string;
  readonly words: readonly string[];
  /** The Debian package of the program. */
  readonly inPackage: string;
  /** Command for users, if the program is missing. */
  readonly command: string;
}

const XZ: Unpacking = {
  program: 'xz',
  // Enough for every level of xz, whose largest dictionary has 64 MiB.
  words: ['--decompress', '--stdout', '--threads=1', '--memlimit-decompress=256MiB'],
  inPackage: 'xz-utils',
  command: 'unxz FILE',
};
const BZIP2: Unpacking = {
  program: 'bzip2',
  words: ['--decompress', '--stdout', '--quiet'],
  inPackage: 'bzip2',
  command: 'bunzip2 FILE',
};
/** The user and group `nobody`, which can access nothing else. */
const NOBODY = 65_534;
const MOST_SAID = 500;

/** A stream from compressed to plain bytes. Throws LoadFailed if the host has no `xz`. */
export const xzUnpacker = (program: string | null = findHostProgram('xz')) => unpacker(XZ, program);

/** The counterpart of xzUnpacker() for `bzip2`. */
export const bzip2Unpacker = (program: string | null = findHostProgram('bzip2')) => unpacker(BZIP2, program);

async function unpacker(how: Unpacking, path: string | null): Promise<Duplex> {
  const { program, words, inPackage, command } = how;
  if (path === null)
    throw new LoadFailed(
      `The file is packed with ${program}, and the host has no program for that: unpack it first ` +
        `(\`${command}\`), or ask the operator for the package ${inPackage}`,
    );
  return streamOf(await start(path, words));
}

/** Root of a container may not be able to change users. */
async function start(program: string, words: readonly string[]): Promise<ChildProcess> {
  const options: SpawnOptions = { stdio: 'pipe', env: { LC_ALL: 'C' }, cwd: '/' };
  if (process.getuid?.() !== 0) return startProgram(program, words, options);
  const user = { uid: NOBODY, gid: NOBODY };
  return startProgram(program, words, { ...options, ...user }).catch((error) => {
    if (error.code !== 'EPERM' && error.code !== 'EINVAL') throw error;
    return startProgram(program, words, options);
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
    else stream.destroy(new Error(reasonOf(said) || 'it ended early'));
  });
  return stream;
}

/** The first line without the name of the program; bzip2 ends its lines with advice. */
function reasonOf(said: string): string {
  const [line = ''] = said.trim().split('\n');
  return line.replace(/^\S+: (?:\(stdin\): )?/, '').trim();
}
