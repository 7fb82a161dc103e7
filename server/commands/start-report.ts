/**
 * The messages of `cloudlet start`: text on standard output, or log lines if all output is JSON, so that a
 * combined stream has only one format.
 */
import { fstatSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Cloud } from '../cloud/cloud.ts';
import type { Config } from '../config/config.ts';
import { VERSION } from '../platform/version.ts';
import { banner, bannerFacts, bannerNotes } from './banner.ts';

export interface StartReport {
  begin(): void;
  /** Reports that a part has started. */
  opened(part: string, ms: number): void;
  ready(cloud: Cloud, seconds: number): Promise<void>;
  /** The receiver of lines about the preparation of this host. */
  readonly preparing: 'stdout' | ((line: string) => void);
  stopping(): void;
  stopped(note: string): void;
}

/** Text lines, unless the log is JSON and standard output must be too. */
export function startReport(config: Pick<Config, 'logFormat'>, log: Logger): StartReport {
  return isAllJson(config) ? inLog(log) : inText();
}

/** JSON was requested, or output goes to the same place as a JSON log. */
function isAllJson({ logFormat }: Pick<Config, 'logFormat'>): boolean {
  if (logFormat !== 'auto') return logFormat === 'json';
  return process.stderr.isTTY !== true && isSameFile(1, 2);
}

function isSameFile(one: number, other: number): boolean {
  try {
    const [a, b] = [fstatSync(one), fstatSync(other)];
    return a.dev === b.dev && a.ino === b.ino && a.rdev === b.rdev;
  } catch {
    return false;
  }
}

function inText(): StartReport {
  return {
    begin: () => console.log(`Cloudlet ${VERSION}`),
    opened: (part, ms) => console.log(`  ${part.padEnd(14)} ${ms} ms`),
    ready: async (cloud, seconds) => {
      const lines = await banner(cloud, process.stdout.isTTY === true);
      console.log(`${lines}\n\nReady in ${seconds.toFixed(2)} s. Press Ctrl+C to stop.`);
    },
    preparing: 'stdout',
    stopping: () => console.log('Stopping: waiting for requests in progress …'),
    stopped: (note) => console.log(note),
  };
}

/** Contains no secrets: logs are kept, and others may read them. */
function inLog(log: Logger): StartReport {
  return {
    begin: () => log.info({ version: VERSION }, 'starting'),
    opened: (part, ms) => log.info({ part, ms }, 'opened'),
    ready: async (cloud, seconds) => {
      for (const note of await bannerNotes(cloud, false)) log.warn(note);
      log.info({ ...bannerFacts(cloud), seconds }, 'ready');
    },
    preparing: (line) => log.info(line.trim()),
    stopping: () => log.info('stopping: waiting for requests in progress'),
    stopped: (note) => log.info(note),
  };
}
