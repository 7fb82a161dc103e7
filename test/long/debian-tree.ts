/** A folder with a separate Debian, for programs that this host lacks. Needs root. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { notInstalled } from '../../scripts/installed.ts';

const SOURCES = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];

/** Why none can be created here, or false. */
export function cannotMakeTree(): string | false {
  if (process.getuid?.() !== 0) return 'needs root';
  return notInstalled('mmdebstrap', 'unshare', 'chroot', 'mount');
}

/**
 * Takes minutes. `packages`: separated by commas. Suites other than `bookworm` come from Debian's own mirror.
 */
export function makeTree(tree: string, { suite, packages }: { suite: string; packages: string }): void {
  const source = suite === 'bookworm' ? [SOURCES.find((path) => existsSync(path)) ?? '-'] : [];
  execFileSync(
    'mmdebstrap',
    [
      ...['--quiet', '--mode=root', '--variant=minbase', '--format=directory'],
      ...['--aptopt=APT::Install-Recommends "false"', `--include=${packages}`, suite, tree, ...source],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
}

/** The files of packages of this host's suite and of their dependencies, without configuring them. */
export function unpackTree(tree: string, packages: string): void {
  execFileSync(
    'mmdebstrap',
    [
      ...['--quiet', '--mode=root', '--variant=extract', '--format=directory'],
      ...['--aptopt=APT::Install-Recommends "false"', `--include=${packages}`, 'bookworm', tree],
      SOURCES.find((path) => existsSync(path)) ?? '-',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
}
