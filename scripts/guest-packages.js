/** Debian packages as a source of files: fetched by apt, taken apart by dpkg-deb, never installed. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Something about this host keeps the image from being built. Message and fix are one line for humans. */
export class GuestImageError extends Error {
  constructor(message, fix = 'mend that, then run the set-up again (node scripts/setup.js whole)') {
    super(message);
    this.fix = fix;
  }
}

/** Packages that one call of apt-get fetches, and the share of the work that is done when all are there. */
const FETCHED_AT_ONCE = 6;
const FETCHED_PERCENT = 70;

/** On a host that cannot build the image. It is the same on every host: nothing in it is of the host. */
export const COPY_IMAGE =
  'copy the folder build/guest from the same version of Cloudlet that was set up on Debian or Ubuntu on x64';

/**
 * Fetches packages and unpacks them. `directory` is ours to fill, `path` the PATH on which apt-get and
 * dpkg-deb are looked for. `onProgress(percent, step)`: called while packages are fetched and unpacked.
 */
export class DebianPackages {
  #directory;
  #path;
  #onProgress;
  #options = [];

  constructor({ directory, path, onProgress = () => {} }) {
    this.#directory = directory;
    this.#path = path;
    this.#onProgress = onProgress;
  }

  /** The packages' names and versions as apt knows them now: `{ name: version }`. Throws GuestImageError. */
  candidates(names) {
    return this.#withLists(() => this.#versions(names), names);
  }

  #versions(names) {
    const shown = this.#run('apt-cache', ['show', '--no-all-versions', ...names]);
    const found = {};
    for (const record of shown.stdout.split(/\n\n+/)) {
      const name = /^Package: (.+)$/m.exec(record);
      const version = /^Version: (.+)$/m.exec(record);
      if (name && version) found[name[1]] = version[1];
    }
    return names.every((name) => name in found) ? found : null;
  }

  /** The first of `names` that apt knows. Throws GuestImageError. */
  firstKnown(names) {
    const find = () => names.find((name) => this.#versions([name]) !== null) ?? null;
    return this.#withLists(find, names);
  }

  /** The names that `name` depends on directly. */
  dependencies(name) {
    const { stdout } = this.#run('apt-cache', ['depends', '--important', name]);
    return [...stdout.matchAll(/^\s+(?:Pre)?Depends: (\S+)$/gm)].map((match) => match[1]);
  }

  /** `roots` and those they depend on, directly or not, as far as `isTaken` says. */
  closure(roots, isTaken) {
    const { stdout } = this.#run('apt-cache', ['depends', '--recurse', '--important', ...roots]);
    const dependencies = {};
    for (const block of stdout.split(/\n(?=\S)/)) {
      const [name, ...lines] = block.split('\n');
      const found = lines.map((line) => /^\s+(?:Pre)?Depends: (\S+)$/.exec(line));
      dependencies[name] = found.flatMap((match) => (match ? [match[1]] : []));
    }
    const names = [...roots];
    for (const name of names) {
      const more = (dependencies[name] || []).filter((other) => isTaken(other) && !names.includes(other));
      names.push(...more);
    }
    return names;
  }

  /** Fetches packages and unpacks them into one directory, which is returned. Throws GuestImageError. */
  unpack(names) {
    const debs = join(this.#directory, 'packages');
    const tree = join(this.#directory, 'tree');
    mkdirSync(debs, { recursive: true });
    mkdirSync(tree, { recursive: true });
    // Not all at once, so that somebody who waits sees it go on.
    for (let at = 0; at < names.length; at += FETCHED_AT_ONCE) {
      this.#onProgress(Math.round((FETCHED_PERCENT * at) / names.length), 'fetching packages');
      const some = names.slice(at, at + FETCHED_AT_ONCE);
      const fetched = this.#run('apt-get', ['download', '-qq', ...some], debs);
      if (fetched.status !== 0) throw new GuestImageError(`packages could not be fetched${said(fetched)}`);
    }
    this.#onProgress(FETCHED_PERCENT, 'unpacking packages');
    for (const name of readdirSync(debs)) {
      const result = this.#run('dpkg-deb', ['-x', join(debs, name), tree]);
      if (result.status !== 0) throw new GuestImageError(`${name} could not be unpacked${said(result)}`);
    }
    return tree;
  }

  /**
   * Fetches what the maker published that a package was built of, from where the host has its packages from;
   * the path of that archive. Throws GuestImageError.
   */
  source(name) {
    const [sources, folder] = ['sources', 'source'].map((each) => join(this.#directory, each));
    for (const each of [sources, folder]) mkdirSync(each);
    // Hosts rarely list sources.
    for (const file of aptSources())
      writeFileSync(join(sources, basename(file)), withSources(readFileSync(file, 'utf8')));
    const updated = this.#updateOwnLists([`SourceParts=${sources}`, 'SourceList=/dev/null']);
    const fetched = this.#run('apt-get', ['source', '-qq', '--download-only', '--tar-only', name], folder);
    const [file] = readdirSync(folder).filter((each) => /\.orig\.tar\.\w+$/.test(each));
    if (file === undefined)
      throw new GuestImageError(
        `the source of ${name} could not be fetched${said(fetched) || said(updated)}`,
      );
    return join(folder, file);
  }

  /** Tries with the host's package lists, then with lists of our own that we fetch; these need no root. */
  #withLists(attempt, names) {
    const first = attempt();
    if (first !== null) return first;
    const updated = this.#updateOwnLists([]);
    const second = attempt();
    if (second !== null) return second;
    throw new GuestImageError(
      `apt does not know the packages it takes (${names.join(', ')})${said(updated)}`,
      `let apt reach a mirror with them (Ubuntu: universe), then run the set-up again; or ${COPY_IMAGE}`,
    );
  }

  /** `settings`: where apt finds its sources, below Dir::Etc. */
  #updateOwnLists(settings) {
    const lists = join(this.#directory, 'lists');
    const cache = join(this.#directory, 'cache');
    for (const name of [lists, cache]) mkdirSync(join(name, 'partial'), { recursive: true });
    const archives = join(cache, 'archives', 'partial');
    mkdirSync(archives, { recursive: true });
    const own = [`Dir::State::Lists=${lists}`, `Dir::Cache=${cache}`];
    this.#options = [...own, ...settings.map((each) => `Dir::Etc::${each}`)].flatMap((each) => ['-o', each]);
    return this.#run('apt-get', ['update', '-qq']);
  }

  #run(program, args, cwd = this.#directory) {
    // Not as the user _apt, who may not enter our directories.
    const own = program.startsWith('apt') ? ['-o', 'APT::Sandbox::User=root', ...this.#options] : [];
    const result = spawnSync(program, [...own, ...args], {
      cwd,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      timeout: 300_000,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PATH: this.#path, LC_ALL: 'C' },
    });
    if (result.error?.code === 'ENOENT') {
      throw new GuestImageError(
        `${program} was not found; the image is built from packages of Debian or Ubuntu`,
        COPY_IMAGE,
      );
    }
    return result;
  }

  /**
   * Decompresses `bytes` (a whole file of that `form`, xz or zst): an old Node cannot, and dpkg-deb does not
   * mind what is in a package, so they are wrapped as one.
   */
  unpackFile(bytes, form) {
    const member = (name, content) => {
      const head = `${name.padEnd(16)}${'0'.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}`;
      const size = String(content.length).padEnd(10);
      return [Buffer.from(`${head}${size}\`\n`), content, Buffer.alloc(content.length % 2, '\n')];
    };
    const file = join(this.#directory, 'wrapped');
    const parts = [
      Buffer.from('!<arch>\n'),
      ...member('debian-binary', Buffer.from('2.0\n')),
      ...member('control.tar', Buffer.alloc(1024)),
      ...member(`data.tar.${form}`, bytes),
    ];
    writeFileSync(file, Buffer.concat(parts));
    const result = spawnSync('dpkg-deb', ['--fsys-tarfile', file], {
      maxBuffer: 2 ** 28,
      env: { ...process.env, PATH: this.#path },
    });
    if (result.status !== 0) throw new GuestImageError('a compressed file of a package could not be read');
    return result.stdout;
  }
}

/** Files that say where the host has its packages from. */
function aptSources() {
  const parts = '/etc/apt/sources.list.d';
  const names = existsSync(parts) ? readdirSync(parts) : [];
  return ['/etc/apt/sources.list', ...names.map((name) => join(parts, name))].filter(
    (file) => /\.(?:list|sources)$/.test(file) && existsSync(file),
  );
}

function withSources(text) {
  return text.replace(/^deb(?=\s)/gm, 'deb-src').replace(/^Types:.*$/gm, 'Types: deb-src');
}

function said({ stderr }) {
  const line = String(stderr)
    .split('\n')
    .find((text) => /^(?:E|W|dpkg-deb: error): /.test(text));
  return line ? ` (${line.replace(/^\S+ /, '').slice(0, 200)})` : '';
}
