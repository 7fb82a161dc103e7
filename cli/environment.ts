/**
 * The client's environment: variables, folders, the terminal. The only reader of `process.env` in
 * the client.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { ClientError, EXIT } from './failures.ts';

/** A variable that is set and not empty, or undefined. */
export function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === undefined || value === '' ? undefined : value;
}

/** Proxies, and hosts that are reached directly. */
export function proxyVariables() {
  // The name in lower case wins, as for curl.
  const either = (name: string) => variable(name.toLowerCase()) ?? variable(name);
  const except = (either('NO_PROXY') ?? '').split(/[\s,]+/).filter((name) => name !== '');
  return {
    https: either('HTTPS_PROXY'),
    http: either('HTTP_PROXY'),
    except: except.map((name) => name.replace(/^\./, '').toLowerCase()),
  };
}

/** The environment of a child process, with these variables and without others that match the pattern. */
export function withVariables(
  more: Readonly<Record<string, string>>,
  { without }: { readonly without: RegExp },
): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !without.test(name));
  return { ...Object.fromEntries(kept), ...more };
}

/** Whether a program with that name is in PATH. */
export function hasProgram(name: string): boolean {
  const endings = process.platform === 'win32' ? ['.exe', '.cmd'] : [''];
  const folders = (variable('PATH') ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.some((folder) => endings.some((ending) => isProgram(join(folder, `${name}${ending}`))));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The user's home. Throws ClientError if unknown: in a container the user may have only a number. */
export function homeFolder(): string {
  const home = knownHome();
  if (home !== undefined && isAbsolute(home)) return home;
  throw new ClientError('cannot find your home folder', EXIT.failure, 'Set HOME');
}

function knownHome(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

/** A base folder of the XDG specification, which requires ignoring relative ones. */
function baseFolder(name: string, fallback: string): string {
  const given = variable(name);
  return given !== undefined && isAbsolute(given) ? given : join(homeFolder(), fallback);
}

/** Folder of the profiles. */
export function configFolder(): string {
  const roaming = process.platform === 'win32' ? variable('APPDATA') : undefined;
  return join(roaming ?? baseFolder('XDG_CONFIG_HOME', '.config'), 'cloudlet');
}

/** State of unfinished transfers; removing it only costs time. */
export function cacheFolder(): string {
  return join(baseFolder('XDG_CACHE_HOME', '.cache'), 'cloudlet');
}

/** The name of this computer, shown in the console with the client's keys. */
export function hostName(): string {
  return hostname().split('.', 1)[0] || 'computer';
}

/** Whether a browser could show a window here. */
export function hasDesktop(): boolean {
  if (process.platform !== 'linux') return true;
  return variable('DISPLAY') !== undefined || variable('WAYLAND_DISPLAY') !== undefined;
}

/** User id, or undefined on Windows. */
export function ownUid(): number | undefined {
  return process.getuid?.();
}

/** Whether the output goes to a terminal. */
export function isTerminal(stream: NodeJS.ReadStream | NodeJS.WriteStream): boolean {
  return stream.isTTY === true;
}

/** Columns of the terminal; unknown widths are reported as 0. */
export function columns(): number {
  return process.stderr.columns || 80;
}
