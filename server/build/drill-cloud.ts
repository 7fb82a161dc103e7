/**
 * The second cloud of a restore drill. It listens nowhere and serves nobody: nothing is called that would
 * start jobs, machines or deliveries. It has user ids and names of its own, so that nothing of the live cloud
 * is taken, and no settings that lead to anything outside of its directory.
 */
import { pino } from 'pino';
import type { Config } from '../config/config.ts';
import { UIDS } from '../drivers/qemu/guest-folders.ts';
import { systemClock } from '../platform/clock.ts';
import { buildCloud, type Cloud } from './cloud.ts';

/** Engines only choose from these: nothing in a drill listens on a port. */
const PORTS = { postgresqlPort: 63_000, mysqlPort: 63_300, mongodbPort: 63_600 };

/** The settings of the live cloud, without everything that leads out of `dataDir`. */
export function drillConfig(live: Config, dataDir: string): Config {
  return {
    ...live,
    ...PORTS,
    dataDir,
    metadataUrl: '',
    blobsUrl: '',
    blobsCredentialsFile: '',
    recoveryTarget: '',
    recoveryCredentialsFile: '',
    postgresqlUrl: '',
    mysqlUrl: '',
    mongodbUrl: '',
    mongodbServer: 'built-in',
    databaseHost: '',
    tlsCert: '',
    tlsKey: '',
    publicUrl: '',
    dataUrl: '',
    appsDomain: '',
    publishedPorts: 'off',
    vmNetwork: 'loopback',
    vmOutbound: 'off',
    vmUidBase: live.vmUidBase + UIDS.drill,
    // The test boot of KVM would be one more process.
    vmAccel: 'tcg',
  };
}

/** Throws StartupError, or an Error with a one-line message, as buildCloud() does. */
export function buildDrillCloud(config: Config, name: string): Promise<Cloud> {
  const log = pino({ level: 'silent' });
  return buildCloud({ config, clock: systemClock, log, step: (_name, work) => work(), drill: name });
}

/** Ends it in the order that buildCloud() wants. */
export async function closeDrillCloud(cloud: Cloud): Promise<void> {
  await cloud.api.close();
  await cloud.data.close();
  await cloud.close();
}
