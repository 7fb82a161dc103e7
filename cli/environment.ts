/**
 * The surroundings of the client: variables, folders, the terminal. The only reader of `process.env` here.
 */
import { homedir, hostname, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** A variable that is set and not empty, or undefined. */
export function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === undefined || value === '' ? undefined : value;
}

/** The environment of a program that we start, with these variables. */
export function withVariables(more: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...more };
}

/** A base folder of the XDG specification, which says that a relative one is to be ignored. */
function baseFolder(name: string, fallback: string): string {
  const given = variable(name);
  return given !== undefined && isAbsolute(given) ? given : join(homedir(), fallback);
}

/** Profiles are here. */
export function configFolder(): string {
  const roaming = process.platform === 'win32' ? variable('APPDATA') : undefined;
  return join(roaming ?? baseFolder('XDG_CONFIG_HOME', '.config'), 'cloudlet');
}

/** State of transfers under way is here; whoever removes it loses only time. */
export function cacheFolder(): string {
  return join(baseFolder('XDG_CACHE_HOME', '.cache'), 'cloudlet');
}

/** The name of this computer, which the console shows with keys that the client makes. */
export function hostName(): string {
  return hostname().split('.', 1)[0] || 'computer';
}

/** Whether a browser could show a window here. */
export function hasDesktop(): boolean {
  if (process.platform !== 'linux') return true;
  return variable('DISPLAY') !== undefined || variable('WAYLAND_DISPLAY') !== undefined;
}

/** Id of the user, or undefined where there are none (Windows). */
export function ownUid(): number | undefined {
  const { uid } = userInfo();
  return uid < 0 ? undefined : uid;
}

/** Whether someone reads what is printed as it comes. */
export function isTerminal(stream: NodeJS.ReadStream | NodeJS.WriteStream): boolean {
  return stream.isTTY === true;
}

/** Columns of the terminal; one that does not know says 0. */
export function columns(): number {
  return process.stderr.columns || 80;
}
