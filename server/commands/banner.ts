/** The banner printed once everything is ready. */
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import type { Cloud } from '../cloud/cloud.ts';
import type { Config } from '../config/config.ts';
import { registrationOf } from '../config/registrations.ts';
import { isLoopback } from '../http/origins.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { openParentOf } from '../platform/data-directory.ts';
import { ROOT } from '../platform/program-files.ts';

/**
 * Addresses, warnings, and how to become administrator. `isTerminal`: a person reads it now.
 * Elsewhere it may be stored and read by others, so it contains no token.
 */
export async function banner(cloud: Cloud, isTerminal: boolean): Promise<string> {
  const facts = bannerFacts(cloud);
  const lines = [
    '',
    `  Console      ${facts.console}`,
    `  API          ${facts.api}`,
    `  Docs         ${facts.docs}`,
    `  Data origin  ${facts.data_origin}`,
    `  Data         ${facts.data_dir}`,
  ];
  for (const note of await bannerNotes(cloud, isTerminal)) lines.push('', indented(note));
  return lines.join('\n');
}

const indented = (text: string) => text.replace(/^/gm, '  ');

/** The cloud's addresses and data directory. */
export function bannerFacts({ config, addresses }: Cloud) {
  return {
    console: `${addresses.apiUrl}/`,
    api: `${addresses.apiUrl}/api`,
    docs: `${addresses.apiUrl}/api/docs`,
    data_origin: addresses.dataUrl,
    data_dir: config.dataDir,
  };
}

/** Notes and warnings for the operator. */
export async function bannerNotes(cloud: Cloud, isTerminal: boolean): Promise<string[]> {
  const notes = warnings(cloud).map((warning) => `Warning: ${warning}`);
  notes.push(...registrationNotes(cloud.config));
  if (hearsAll(cloud)) notes.unshift(ELSEWHERE);
  if (await cloud.setupLinks.needsSetup()) notes.push((await setupLines(cloud, isTerminal)).join('\n'));
  return notes;
}

const ELSEWHERE = 'From other machines, use the name or address of this host instead of localhost.';

/** Only for our own default: it differs from a cloud on loopback. */
function registrationNotes(config: Config): string[] {
  if (config.registration !== 'auto' || registrationOf(config) === 'open') return [];
  return [`${BY_INVITATION}. To let everyone register, set CLOUDLET_REGISTRATION=open.`];
}

/** Shown if others can reach the cloud and the settings do not say who may register. */
export const BY_INVITATION =
  'Registration is by invitation, because others can reach this cloud; "cloudlet invite add" creates invitations';

/** True if other machines can reach the cloud and no public name is set. */
function hearsAll({ api, config }: Cloud): boolean {
  const { address } = api.server.address() as AddressInfo;
  return config.publicUrl === '' && (address === '0.0.0.0' || address === '::');
}

function warnings({ api, config }: Cloud): string[] {
  const { address } = api.server.address() as AddressInfo;
  const open = openParentOf(config.dataDir);
  return [
    ...(isExposed(config, address) ? [`${EXPOSED}.\nTo fix this, ${EXPOSED_FIX}.`] : []),
    ...(open === null
      ? []
      : [`every user of this host can rename files in ${open}. To fix this, run chmod o-w ${open}`]),
  ];
}

async function setupLines({ config, addresses, setupLinks }: Cloud, isTerminal: boolean): Promise<string[]> {
  const command = (verb: string) => commandLine(['admin', verb], config.dataDir, isTerminal);
  if (!isTerminal) {
    return [
      'There is no administrator yet. To get a link that creates one, run this command on this host:',
      command('setup-link'),
      `Or create one directly with: ${command('create')}`,
    ];
  }
  const token = await setupLinks.createSetupLink(BACKGROUND, (made) => made);
  return [
    'There is no administrator yet. Open this link within 30 minutes to become one:',
    `${addresses.apiUrl}/setup?token=${token}`,
    `Or create one at any time with: ${command('create')}`,
  ];
}

/** For copying: in full, unless a short form is enough for the reader. */
function commandLine(verb: readonly string[], dataDir: string, isTerminal: boolean): string {
  const isHere = isTerminal && resolve() === resolve(ROOT);
  const launcher = isHere ? 'bin/cloudlet' : join(ROOT, 'bin/cloudlet');
  const where = isHere && dataDir === resolve('data') ? [] : ['--data-dir', dataDir];
  return [launcher, ...verb, ...where].map(quoted).join(' ');
}

/** Quotes a word for a shell. */
export function quoted(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Shown if others on the network could read traffic of users. */
export const EXPOSED =
  'other machines can reach these ports, and passwords and keys are sent without encryption';
export const EXPOSED_FIX =
  'run a reverse proxy with TLS (deploy/Caddyfile, deploy/nginx.conf), and set CLOUDLET_PUBLIC_URL and ' +
  'CLOUDLET_DATA_URL to its https:// addresses';

/** `address`: the address that the ports are bound to. */
export function isExposed({ publicUrl, dataUrl }: Config, address: string): boolean {
  return !isLoopback(address) && !(isPrivate(publicUrl) && isPrivate(dataUrl));
}

/** Reached over TLS, or only from this machine, for example through ports published on loopback. */
function isPrivate(url: string): boolean {
  if (url === '') return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}
