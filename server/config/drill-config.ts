/** The settings of a restore drill's second cloud. */
import type { Config } from './config.ts';

/** Engines only choose from these: nothing in a drill listens on a port. */
const PORTS = { postgresqlPort: 63_000, mysqlPort: 63_300, mongodbPort: 63_600 };

/** The settings of the live cloud, without everything that leads out of `dataDir`. */
export function drillConfig(
  live: Config,
  { dataDir, vmUidBase }: Pick<Config, 'dataDir' | 'vmUidBase'>,
): Config {
  return {
    ...live,
    ...PORTS,
    dataDir,
    metadataUrl: '',
    masterKeyFile: '',
    blobsUrl: '',
    blobsCredentialsFile: '',
    recoveryTarget: '',
    recoveryCredentialsFile: '',
    postgresqlUrl: '',
    mysqlUrl: '',
    mongodbUrl: '',
    mongodbServer: 'built-in',
    databaseHost: '',
    publicDatabaseHost: '',
    tlsCert: '',
    tlsKey: '',
    publicUrl: '',
    dataUrl: '',
    appsDomain: '',
    smtpUrl: '',
    publishedPorts: 'off',
    imageMirror: 'off',
    vmNetwork: 'loopback',
    vmOutbound: 'off',
    vmUidBase,
    // The test boot of KVM would be one more process.
    vmAccel: 'tcg',
  };
}
