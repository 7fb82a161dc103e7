/**
 * The file system as seen by an untrusted process: the system's programs and libraries, its additional needs
 * and its own folder, nothing else of this host. It is mounted in a separate mount namespace, and ends with
 * the process.
 */
import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { quoted } from './keeper-shells.ts';

/**
 * Where a process sees its folder: a short path, because paths of unix sockets have at most 107 bytes, and
 * one that no host uses, unlike /srv, where Cloudlet itself may be.
 */
export const AT = '/own';
/** A folder of every Linux that contains nothing a view shows, so the new root can be mounted on it. */
export const ROOT = '/sys';

/** The folders of the root are often links into /usr. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store'];
/** Files by which programs and libraries are found. */
const SETTINGS = ['/etc/ld.so.cache', '/etc/alternatives'];
const DEVICES = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom'];
const READ_ONLY = 'rbind,ro,nosuid,nodev';

export interface View {
  /** A host folder, mounted at `AT`, writable. */
  readonly folder: string;
  /** Files and folders of the host, absolute, mounted at the same path. */
  readonly readOnly: readonly string[];
  /** Maximum in /tmp and /dev/shm together. */
  readonly temporaryMb: number;
  /** Number of user and group. */
  readonly uid: number;
}

/**
 * Lines for a shell that makes the view under `ROOT`. Throws when a path is not absolute, or does not exist.
 * The shell must be in its own mount and process namespaces.
 */
export function viewScript({ folder, readOnly, temporaryMb, uid }: View): string {
  const shown = shownFolders(readOnly);
  const onHost = mountsOfHost();
  const mounts = [
    ...shown.map((path) => mountLine(path, path, readOnlyOptions(path, onHost))),
    ...DEVICES.filter(existsSync).map((path) => mountLine(path, path, 'rbind')),
    mountLine(folder, AT, 'rbind'),
    `proc ${ROOT}/proc proc nosuid,nodev,noexec`,
  ];
  const files = [...shown.filter((path) => !isFolder(path)), ...DEVICES.filter(existsSync)];
  const folders = ['/etc', '/proc', '/dev/shm', '/tmp', AT, ...shown.filter(isFolder), ...files.map(parent)];
  return [
    `mount -t tmpfs -o mode=755,size=${temporaryMb}m,nosuid,nodev,noexec cloudlet ${ROOT}`,
    `cd ${ROOT}`,
    `mkdir -p ${[...new Set(folders)].map(inRoot).join(' ')}`,
    'chmod 1777 tmp dev/shm',
    ...SYSTEM.filter(isLink).map((path) => `ln -s ${quoted(readlinkSync(path))} ${inRoot(path)}`),
    ...files.map((path) => `: >${inRoot(path)}`),
    `printf ${quoted(usersOf(uid))} >etc/passwd`,
    `printf ${quoted(`root:x:0:\ncloudlet:x:${uid}:\n`)} >etc/group`,
    `printf ${quoted('127.0.0.1 localhost\n::1 localhost\n')} >etc/hosts`,
    `printf ${quoted('passwd: files\ngroup: files\nhosts: files\n')} >etc/nsswitch.conf`,
    `printf '%s\\n' ${quoted(mounts.join('\n'))} >etc/fstab`,
    `mount -a -T ${ROOT}/etc/fstab`,
    ': >etc/fstab',
  ].join('\n');
}

/** Some programs do not start as a user without a name. */
function usersOf(uid: number): string {
  const own = `cloudlet:x:${uid}:${uid}::${AT}:/usr/sbin/nologin\n`;
  return uid === 0 ? own : `root:x:0:0::/:/usr/sbin/nologin\n${own}`;
}

/** Resolved paths without duplicates and subpaths. */
function shownFolders(readOnly: readonly string[]): string[] {
  for (const path of readOnly) if (!isAbsolute(path)) throw new Error(`${path} is not absolute`);
  const system = SYSTEM.filter((path) => existsSync(path) && !isLink(path));
  const wanted = [...system, ...SETTINGS.filter(existsSync), ...readOnly].sort();
  return wanted.filter(
    (path, at) => !wanted.slice(0, at).some((other) => path === other || path.startsWith(`${other}/`)),
  );
}

interface Mount {
  readonly point: string;
  readonly options: readonly string[];
}

function mountsOfHost(): Mount[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').trimEnd().split('\n');
  return lines
    .map((line) => line.split(' '))
    .map(([, , , , point = '', options = '']) => ({ point: unescaped(point), options: options.split(',') }));
}

/** Only root of the host may lift an option of a mount: leaving it out fails in a user namespace. */
function readOnlyOptions(path: string, mounts: readonly Mount[]): string {
  const real = realpathSync(path);
  const above = mounts
    .filter(({ point }) => point === '/' || real === point || real.startsWith(`${point}/`))
    .sort((one, other) => one.point.length - other.point.length);
  return above.at(-1)?.options.includes('noexec') ? `${READ_ONLY},noexec` : READ_ONLY;
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function isFolder(path: string): boolean {
  return statSync(path).isDirectory();
}

function parent(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

function inRoot(path: string): string {
  return quoted(`.${path}`);
}

function mountLine(from: string, to: string, options: string): string {
  return `${field(from)} ${field(ROOT + to)} none ${options}`;
}

/** A path as a field of fstab. */
function field(path: string): string {
  return path.replace(/[\\\s]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

/** A path as the kernel writes it in a list of mounts. */
function unescaped(field: string): string {
  return field.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
