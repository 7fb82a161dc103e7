/** Settings of databases, in the units of the code. */
import type { Config } from './config.ts';

type Limits = Pick<Config, 'databaseConnections' | 'databaseServerConnections' | 'databaseStatementSeconds'>;

const HOUR_MS = 3_600_000;

/** Limits of each database, and of the servers of accounts. */
export function databaseLimits(config: Limits) {
  const { databaseConnections: connections, databaseStatementSeconds: seconds } = config;
  const serverConnections = Math.max(connections, config.databaseServerConnections);
  return { limits: { connections, statementMs: seconds * 1000 }, serverConnections };
}

/** Size limits of databases, and how long and how much of deleted ones is kept. */
export function databaseKeeping(config: Config) {
  return {
    ...databaseLimits(config),
    maxSizeMb: config.databaseSizeMb,
    keepMs: config.databaseKeepHours * HOUR_MS,
    keptBytes: config.databaseKeptMb * 2 ** 20,
    pointDumpMs: config.recoveryDumpMinutes * 60_000,
    pointSilenceMs: config.recoverySilenceSeconds * 1000,
    orphanGraceMs: config.sweepGraceSeconds * 1000,
  };
}

/** Whether logs of database servers are archived. */
export function isContinuous({
  recoveryTarget,
  continuousSeconds,
}: Pick<Config, 'recoveryTarget' | 'continuousSeconds'>): boolean {
  return recoveryTarget !== '' && continuousSeconds > 0;
}
