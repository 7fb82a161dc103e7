/**
 * Builds the guest image `tiny`, build/guest/tiny-kernel and tiny-initrd, from Debian's packages and the
 * files in guest/. Plain JavaScript without dependencies, because the set-up calls it on an old Node.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { cpioArchive } from './cpio-archive.js';
import { COPY_IMAGE, DebianPackages, GuestImageError } from './guest-packages.js';

/** Packages that name a kernel for virtual machines, of Debian and of Ubuntu; the first that there is. */
const KERNELS = [
  'linux-image-cloud-amd64',
  'linux-image-virtual',
  'linux-image-generic',
  'linux-image-amd64',
];
/** Packages whose programs the guest has, and the programs. */
const PROGRAMS = {
  'busybox-static': ['busybox'],
  'dropbear-bin': ['dropbear', 'dropbearkey'],
  // What dropbear leaves to OpenSSH: today's scp speaks it, too.
  'openssh-sftp-server': ['sftp-server'],
  e2fsprogs: ['mke2fs', 'e2fsck', 'resize2fs'],
};
/** Loaded in this order at boot, each after what it depends on. */
const MODULES = [
  'virtio_pci',
  'virtio_blk',
  'button',
  'evdev',
  // Or nobody would hear of its panic.
  'pvpanic_mmio',
  'virtio_net',
  'virtio_rng',
  'virtio_balloon',
  'isofs',
];
const DIRECTORIES = ['bin', 'sbin', 'usr', 'usr/bin', 'usr/sbin', 'etc', 'lib', 'lib64', 'lib/modules'];
const EMPTY_DIRECTORIES = ['dev', 'proc', 'sys', 'run', 'mnt', 'tmp', 'root'];

/**
 * Builds the image unless it is there and its inputs are the same, which costs milliseconds to find out.
 * `root` is the repository, `outsidePath` the PATH for Debian's tools. Returns whether it was built. Throws
 * GuestImageError, whose message is one line, when this host cannot build it.
 */
export function buildGuestImage({ root, outsidePath, onProgress }) {
  if (isGuestImageCurrent(root)) return false;
  const { output, stampFile, results, problemFile } = pathsOf(root);
  const stamp = inputsStamp(root);
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    const here = `${process.platform} on ${process.arch}`;
    throw new GuestImageError(`the image is built on Linux on x64 only, and this is ${here}`, COPY_IMAGE);
  }
  mkdirSync(output, { recursive: true });
  const directory = mkdtempSync(join(output, 'work-'));
  try {
    const packages = new DebianPackages({ directory, path: outsidePath, onProgress });
    const { kernel, initrd } = assemble({ packages, root, stamp });
    writeFileSync(join(directory, 'tiny-kernel'), kernel);
    writeFileSync(join(directory, 'tiny-initrd'), initrd);
    rmSync(stampFile, { force: true });
    for (const path of results) renameSync(join(directory, basename(path)), path);
    writeFileSync(stampFile, stamp);
    rmSync(problemFile, { force: true });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return true;
}

function pathsOf(root) {
  const output = join(root, 'build', 'guest');
  const results = ['tiny-kernel', 'tiny-initrd'].map((name) => join(output, name));
  return { output, results, stampFile: join(output, 'stamp'), problemFile: join(output, 'problem.json') };
}

/** Writes down why there is no image, for the server (server/drivers/qemu/images/tiny-image.ts) to tell. */
export function noteNoGuestImage(root, { message, fix }) {
  const { output, problemFile } = pathsOf(root);
  mkdirSync(output, { recursive: true });
  writeFileSync(problemFile, `${JSON.stringify({ reason: message, fix })}\n`);
}

/** True when the image is there and was built from what is in the repository `root` now. */
export function isGuestImageCurrent(root) {
  const { stampFile, results } = pathsOf(root);
  return [...results, stampFile].every(existsSync) && readFileSync(stampFile, 'utf8') === inputsStamp(root);
}

/** Makes the next server build an image that is not of the present sources. The old one serves until then. */
export function askForGuestImage(root) {
  rmSync(pathsOf(root).stampFile, { force: true });
}

/** A hash of the image's inputs, without versions of packages: these are chosen when it is built. */
function inputsStamp(root) {
  const hash = createHash('sha256');
  const scripts = ['guest-image.js', 'guest-packages.js', 'cpio-archive.js'];
  for (const path of [...scripts.map((name) => join('scripts', name)), ...filesBelow(root, 'guest')]) {
    const content = readFileSync(join(root, path));
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return `${hash.digest('hex')}\n`;
}

/** Paths of all files below `root`/`path`, from `root`, in one order everywhere. */
function filesBelow(root, path) {
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => {
      const below = `${path}/${name}`;
      return statSync(join(root, below)).isDirectory() ? filesBelow(root, below) : [below];
    });
}

function assemble({ packages, root, stamp }) {
  const newest = packages.firstKnown(KERNELS);
  const kernelPackage = packages.dependencies(newest).find((name) => /^linux-image-\d/.test(name));
  if (kernelPackage === undefined) throw new GuestImageError(`${newest} names no kernel`, COPY_IMAGE);
  const names = [kernelPackage, ...Object.keys(PROGRAMS)];
  for (const name of names) {
    for (const library of packages.dependencies(name)) {
      // Ubuntu keeps a kernel's modules in a package of their own.
      if (/^(?:lib|zlib|linux-modules-)/.test(library) && !names.includes(library)) names.push(library);
    }
  }
  const versions = packages.candidates(names);
  const tree = packages.unpack(names);
  const files = treeFiles(tree);
  const release = createHash('sha256').update(stamp).update(JSON.stringify(versions)).digest('hex');

  const initrd = cpioArchive(
    withDirectories([
      ...programs(files, packages),
      ...modules(files, packages),
      ...ownFiles(root),
      { path: 'lib/tiny.release', type: 'file', mode: 0o644, content: `${release}\n` },
    ]),
  );
  const image = files.find((path) => /\/boot\/vmlinuz-/.test(path));
  return { kernel: readFileSync(image), initrd };
}

function treeFiles(tree) {
  return readdirSync(tree).flatMap((name) => {
    const path = join(tree, name);
    const status = lstatSync(path);
    if (status.isDirectory()) return treeFiles(path);
    return [path];
  });
}

/** The programs, every library that one of them names, and busybox's many names. */
function programs(files) {
  const binary = (path) => (/\/sbin\//.test(path) ? 'sbin' : 'bin');
  // Where dropbear looks for it.
  const fixed = { 'sftp-server': 'usr/lib' };
  const entries = Object.values(PROGRAMS)
    .flat()
    .map((name) => {
      const path = files.find((file) => new RegExp(`/(?:s?bin|lib/openssh)/${name}$`).test(file));
      if (path === undefined) throw new GuestImageError(`the packages have no ${name}`);
      const usr = name.startsWith('dropbear') ? 'usr/' : '';
      const directory = fixed[name] ?? `${usr}${binary(path)}`;
      return { path: `${directory}/${name}`, type: 'file', mode: 0o755, content: readFileSync(path) };
    });
  const libraries = new Map();
  const queue = entries.map(({ content }) => content);
  for (let content = queue.pop(); content !== undefined; content = queue.pop()) {
    for (const [name] of content.toString('latin1').matchAll(/\b(?:lib[\w.+-]+|ld-[\w-]+)\.so\.\d+/g)) {
      const path = files.find((file) => basename(file) === name && /\/lib(?:64)?\//.test(file));
      if (path === undefined || libraries.has(name)) continue;
      const library = readFileSync(realpathSync(path));
      libraries.set(name, library);
      queue.push(library);
    }
  }
  for (const [name, content] of libraries) {
    const directory = name.startsWith('ld-') ? 'lib64' : 'lib';
    entries.push({ path: `${directory}/${name}`, type: 'file', mode: 0o755, content });
  }
  return [...entries, ...applets(files, entries)];
}

/** A link to busybox for each of its names that no other program has. */
function applets(files, entries) {
  const busybox = files.find((path) => /\/bin\/busybox$/.test(path));
  const { status, stdout } = spawnSync(busybox, ['--list-full'], { encoding: 'utf8' });
  if (status !== 0) throw new GuestImageError('busybox does not run on this host');
  const taken = new Set(entries.map(({ path }) => basename(path)));
  return stdout
    .split('\n')
    .filter((path) => /^(?:usr\/)?s?bin\/\S+$/.test(path) && !taken.has(basename(path)))
    .map((path) => ({ path, type: 'link', mode: 0o777, content: '/bin/busybox' }));
}

/** The kernel's modules, each after those it needs, numbered in that order. */
function modules(files, packages) {
  const byName = new Map();
  for (const path of files) {
    const match = /\/([^/]+)\.ko(?:\.(xz|zst))?$/.exec(path);
    if (match) byName.set(match[1].replaceAll('-', '_'), { path, form: match[2] });
  }
  const ordered = new Map();
  const add = (name) => {
    const found = byName.get(name);
    // Not there: built into this kernel.
    if (found === undefined || ordered.has(name)) return;
    const raw = readFileSync(found.path);
    const content = found.form === undefined ? raw : packages.unpackFile(raw, found.form);
    const depends = /\0depends=([^\0]*)\0/.exec(`\0${content.toString('latin1')}`);
    for (const other of depends ? depends[1].split(',') : []) add(other.replaceAll('-', '_'));
    ordered.set(name, content);
  };
  for (const name of MODULES) add(name);
  return [...ordered].map(([name, content], index) => {
    const number = String(index).padStart(2, '0');
    return { path: `lib/modules/${number}-${name}.ko`, type: 'file', mode: 0o644, content };
  });
}

function ownFiles(root) {
  return filesBelow(root, 'guest').map((path) => {
    const isScript = /^guest\/(?:init$|lib\/)/.test(path);
    const mode = isScript ? 0o755 : 0o644;
    return { path: path.slice('guest/'.length), type: 'file', mode, content: readFileSync(join(root, path)) };
  });
}

/** Puts the directories before everything, and the one device that the kernel wants for /init's output. */
function withDirectories(entries) {
  const paths = new Set([...DIRECTORIES, ...EMPTY_DIRECTORIES]);
  for (const { path } of entries) {
    const parts = path.split('/').slice(0, -1);
    for (const [index] of parts.entries()) paths.add(parts.slice(0, index + 1).join('/'));
  }
  const directories = [...paths].sort().map((path) => ({ path, type: 'directory', mode: 0o755 }));
  const console = { path: 'dev/console', type: 'character', mode: 0o600, device: [5, 1] };
  return [...directories, console, ...entries];
}
