/** The part of `cloudlet doctor` that checks the machine: disk, ports, clock, limits, versions. */
import { lookup } from 'node:dns/promises';
import { constants } from 'node:fs';
import { access, mkdtemp, readFile, realpath, rmdir, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { registrationDomains, registrationOf } from '../../config/registrations.ts';
import { lockDirectory } from '../../drivers/directory-lock.ts';
import { checkedSqliteVersion } from '../../drivers/metadata-sqlite/connection.ts';
import { isLoopback } from '../../http/origins.ts';
import type { Clock } from '../../platform/clock.ts';
import { openParentOf, otherOwnerOf } from '../../platform/data-directory.ts';
import type { Finding } from '../../platform/finding.ts';
import { BY_INVITATION, EXPOSED, EXPOSED_FIX, isExposed } from '../banner.ts';

const GIB = 2 ** 30;
const LOW_SPACE_BYTES = 5 * GIB;
const NO_SPACE_BYTES = 256 * 2 ** 20;
const ASK_MS = 2000;
/** Older than this program: the clock was never set. */
const FIRST_YEAR = 2026;
const LAST_YEAR = 2100;
/** Clock drift tolerated during the check, ms. */
const CLOCK_SLACK_MS = 50;

export function checkRuntime(): Finding[] {
  const node: Finding = { level: 'ok', subject: 'Node', detail: process.version };
  try {
    return [node, { level: 'ok', subject: 'SQLite', detail: checkedSqliteVersion() }];
  } catch (error) {
    return [node, { level: 'fail', subject: 'SQLite', detail: messageOf(error), fix: 'npm ci' }];
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The directory itself, or its nearest existing ancestor, where it would be created. */
export async function existingDirectory(path: string): Promise<string> {
  try {
    await access(path);
    return path;
  } catch {
    return dirname(path) === path ? path : existingDirectory(dirname(path));
  }
}

export async function checkDataDirectory({ dataDir }: Config): Promise<Finding[]> {
  const directory = await existingDirectory(dataDir);
  const exists = directory === dataDir;
  const subject = 'data directory';
  const foreign = exists ? otherOwnerOf(dataDir) : null;
  if (foreign !== null) return [{ level: 'fail', subject, ...foreign }];
  try {
    await access(directory, constants.W_OK);
    // access() succeeds for root on some read-only file systems; creating a file is a reliable
    // check.
    await rmdir(await mkdtemp(join(directory, '.doctor-')));
  } catch (error) {
    const fix = `chown it to the user that runs Cloudlet, or set CLOUDLET_DATA_DIR`;
    return [{ level: 'fail', subject, detail: `${directory} is not writable (${messageOf(error)})`, fix }];
  }
  const state = exists
    ? isInUse(dataDir)
      ? 'in use by a running Cloudlet'
      : 'not in use'
    : 'will be created at the first start';
  const open = openParentOf(await realpath(directory));
  const location: Finding =
    open === null
      ? { level: 'ok', subject, detail: `${dataDir} (${state})` }
      : {
          level: 'warn',
          subject,
          detail: `${dataDir} (${state}): every user of this host can rename files in ${open}`,
          fix: `chmod o-w ${open}, or set CLOUDLET_DATA_DIR`,
        };
  return [location, await checkSpace(directory)];
}

async function checkSpace(directory: string): Promise<Finding> {
  const { bavail, bsize, blocks } = await statfs(directory);
  const free = bavail * bsize;
  const detail = `${(free / GIB).toFixed(1)} GiB free of ${((blocks * bsize) / GIB).toFixed(1)} GiB`;
  const level = free < NO_SPACE_BYTES ? 'fail' : free < LOW_SPACE_BYTES ? 'warn' : 'ok';
  const fix = 'free some disk space, or set CLOUDLET_DATA_DIR to a directory on a larger disk';
  return { level, subject: 'disk space', detail, ...(level === 'ok' ? {} : { fix }) };
}

function isInUse(dataDir: string): boolean {
  try {
    lockDirectory(dataDir).release();
    return false;
  } catch {
    return true;
  }
}

export async function checkPorts(config: Config): Promise<Finding[]> {
  const api = await checkPort(config, { subject: 'API port', port: config.port, setting: 'CLOUDLET_PORT' });
  const data = { subject: 'data port', port: config.dataPort, setting: 'CLOUDLET_DATA_PORT' };
  return [api, await checkPort(config, data)];
}

/** Derives from the bound addresses who can reach the ports. */
export async function checkExposure(config: Config): Promise<Finding[]> {
  const subject = 'encryption';
  const { address } = await lookup(config.host).catch(() => ({ address: '' }));
  if (address === '') return []; // the check of the ports reports that nothing can listen there
  if (isExposed(config, address)) return [{ level: 'warn', subject, detail: EXPOSED, fix: EXPOSED_FIX }];
  const detail = isLoopback(address)
    ? 'only this host can reach the ports'
    : 'a reverse proxy with TLS is configured';
  return [{ level: 'ok', subject, detail }];
}

/** Reports who may register; a warning if anyone on the network can. */
export function checkRegistration(config: Config): Finding[] {
  const subject = 'registration';
  const policy = registrationOf(config);
  if (policy === 'open' && registrationOf({ ...config, registration: 'auto' }) !== 'open') {
    const detail = 'everyone who can reach this cloud can register an account';
    return [
      { level: 'warn', subject, detail, fix: 'set CLOUDLET_REGISTRATION=invitation, if they should not' },
    ];
  }
  const detail = {
    open: 'everyone on this host can register',
    invitation: config.registration === 'auto' ? BY_INVITATION : 'by invitation only',
    domain: `for addresses of ${registrationDomains(config).join(', ')}, confirmed by mail`,
    closed: 'closed: administrators create accounts',
  };
  return [{ level: 'ok', subject, detail: detail[policy] }];
}

interface PortQuestion {
  readonly subject: string;
  readonly port: number;
  readonly setting: string;
}

async function checkPort(
  { host, dataDir }: Config,
  { subject, port, setting }: PortQuestion,
): Promise<Finding> {
  if (port === 0) return { level: 'ok', subject, detail: 'any free port' };
  const where = `${host}:${port}`;
  const problem = await tryListen(host, port);
  if (problem === undefined) return { level: 'ok', subject, detail: `${where} is free` };
  if (problem === 'EADDRINUSE') {
    if (isInUse(dataDir) && (await answersHttp(host, port))) {
      return { level: 'ok', subject, detail: `${where} is in use by the running Cloudlet` };
    }
    const fix = `stop the other program (ss -ltnp 'sport = :${port}'), or set ${setting}`;
    return { level: 'fail', subject, detail: `${where} is in use by another program`, fix };
  }
  const fix =
    problem === 'EACCES' ? `set ${setting} to 1024 or more` : 'set CLOUDLET_HOST to an address of this host';
  return { level: 'fail', subject, detail: `cannot listen on ${where} (${problem})`, fix };
}

/** The error code of listening, or undefined if it worked. */
function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
}

async function answersHttp(host: string, port: number): Promise<boolean> {
  const reachable = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  const authority = reachable.includes(':') ? `[${reachable}]` : reachable;
  try {
    const answer = await fetch(`http://${authority}:${port}/healthz`, {
      signal: AbortSignal.timeout(ASK_MS),
    });
    await answer.body?.cancel();
    // The data port answers as S3 does.
    const id = answer.headers.get('x-request-id') ?? answer.headers.get('x-amz-request-id');
    return id?.startsWith('req-') === true;
  } catch {
    return false;
  }
}

/**
 * The year, and whether wall time passes as fast as real time: signatures and expiry dates depend on both.
 */
export async function checkClock(clock: Clock): Promise<Finding[]> {
  const before = { wall: clock.now(), monotonic: clock.monotonic() };
  await sleep(200);
  const drift = clock.now() - before.wall - (clock.monotonic() - before.monotonic);
  const subject = 'clock';
  const fix = 'timedatectl set-ntp true (apt-get install systemd-timesyncd)';
  const year = new Date(before.wall).getUTCFullYear();
  if (year < FIRST_YEAR || year >= LAST_YEAR) {
    return [{ level: 'fail', subject, detail: `the clock is set to the year ${year}`, fix }];
  }
  const now = new Date(before.wall).toISOString();
  if (Math.abs(drift) > CLOCK_SLACK_MS) {
    return [
      {
        level: 'warn',
        subject,
        detail: `${now}; the clock jumped by ${Math.round(drift)} ms during the check`,
        fix,
      },
    ];
  }
  return [{ level: 'ok', subject, detail: now }];
}

/** Sockets, blobs and database files need descriptors; too few lead to refused connections. */
export async function checkDescriptors({ maxConnections }: Config): Promise<Finding[]> {
  const subject = 'open files';
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const text = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  if (text === undefined) return [{ level: 'ok', subject, detail: 'the limit is unknown on this system' }];
  const limit = text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text);
  // Two ports, and a file open for each connection.
  const needed = maxConnections * 3;
  if (limit >= needed) return [{ level: 'ok', subject, detail: `the limit is ${text}` }];
  const fix = `ulimit -n ${needed} (or LimitNOFILE=${needed} in the service), or lower CLOUDLET_MAX_CONNECTIONS`;
  return [
    {
      level: 'warn',
      subject,
      detail: `the limit is ${text}, but ${maxConnections} connections need ${needed}`,
      fix,
    },
  ];
}
