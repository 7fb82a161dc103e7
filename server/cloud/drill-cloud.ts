/**
 * The second cloud of a restore drill. It listens on no port and starts no jobs, machines or deliveries. Its
 * user ids and names differ from the live cloud's, and no setting refers to anything outside its directory.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { tryMachine } from '../compute/machines/trials.ts';
import type { Config } from '../config/config.ts';
import { drillConfig } from '../config/drill-config.ts';
import { tryLog } from '../databases/points/log-trials.ts';
import { tryDatabases } from '../databases/points/trials.ts';
import type { DrillOrder } from '../drivers/drill-process/drill-ground.ts';
import { UIDS } from '../drivers/qemu/guests/guest-folders.ts';
import { ScratchFolder } from '../drivers/recovery-directory/scratch-folder.ts';
import { systemClock } from '../platform/clock.ts';
import type { DrillFindings } from '../recovery/drill/drill.ts';
import { type DrillCloud, rehearse } from '../recovery/drill/rehearsal.ts';
import { Repository } from '../recovery/repository/repository.ts';
import { readSampledBlobs } from '../storage/blobs/sampled-blobs.ts';
import { buildCloud, type Cloud } from './cloud.ts';
import { targetAt } from './recovery-target.ts';
import { prepareDirectory, withMetadata } from './restored-directory.ts';

/** Inputs of a drill's process besides the request. */
export interface DrillMeans {
  /** Settings of the live cloud. */
  readonly config: Config;
  /** Space to leave free on the disk of the live cloud. */
  readonly reserveBytes: number;
}

/** Share of a drill's time for archived logs, at most. */
const LOGS_SHARE = 1 / 3;

/** See rehearse(). */
export function rehearseOrder(order: DrillOrder, say: (stage: string) => void): Promise<DrillFindings> {
  const { config: live, reserveBytes } = order.means as DrillMeans;
  const { repositoryId, repositoryKey } = order.request;
  const target = targetAt(live.recoveryTarget || join(live.dataDir, 'recovery'), live);
  const key = Buffer.from(repositoryKey, 'hex');
  const repository = new Repository(target, { key, repositoryId });
  const isSharing = statSync(order.folder).dev === statSync(live.dataDir).dev;
  const folder = new ScratchFolder(order.folder, isSharing ? reserveBytes : 0);
  const own = { dataDir: order.folder, vmUidBase: live.vmUidBase + UIDS.drill };
  const config = drillConfig(live, own);
  return rehearse(order.request, {
    repository,
    folder,
    logsWithinMs: live.drillMinutes * 60_000 * LOGS_SHARE,
    withReads: (work) => withMetadata(order.folder, ({ reads }) => work(reads)),
    prepareFirstStart: (first) => prepareDirectory(order.folder, first),
    startCloud: () => startDrillCloud(config, { name: order.name, repository, folder }),
    say,
  });
}

interface DrillParts {
  readonly name: string;
  readonly repository: Repository;
  readonly folder: ScratchFolder;
}

/** Throws StartupError, or an Error with a one-line message, like buildCloud(). */
async function startDrillCloud(
  config: Config,
  { name, repository, folder }: DrillParts,
): Promise<DrillCloud> {
  const log = pino({ level: 'silent' });
  const cloud = await buildCloud({
    config,
    clock: systemClock,
    log,
    step: (_name, work) => work(),
    drill: name,
  });
  const { base, databases, compute } = cloud.within;
  const { metadata, blobs, keys } = base;
  return {
    reads: metadata,
    status: () => statusOf(cloud),
    readObjects: (names) => readSampledBlobs(names, { metadata, blobs, keys }),
    tryDatabases: () => tryDatabases(databases, new AbortController().signal),
    tryLog: (verdict) => tryLog({ logs: repository.logs, engines: databases.engines, folder, verdict }),
    tryMachine: (machine) => tryMachine({ reads: metadata, hypervisor: compute.hypervisor }, machine),
    close: async () => {
      // In the order required by buildCloud().
      await cloud.api.close();
      await cloud.data.close();
      await cloud.close();
    },
  };
}

async function statusOf({ api }: Cloud): Promise<string> {
  await api.ready();
  const headers = { host: 'localhost' };
  const { statusCode, body } = await api.inject({ method: 'GET', url: '/api/system/status', headers });
  if (statusCode !== 200) throw new Error(`the status call returned ${statusCode}: ${body.slice(0, 200)}`);
  const { version } = JSON.parse(body) as { version: string };
  return `a second cloud of version ${version} opened the data and responds`;
}
