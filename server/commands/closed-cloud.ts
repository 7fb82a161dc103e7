/**
 * A cloud without a server, in its own module: calls to a running server must not load a whole
 * cloud.
 */
import { pino } from 'pino';
import { buildCloud, type Cloud } from '../cloud/cloud.ts';
import type { Config } from '../config/config.ts';
import { systemClock } from '../platform/clock.ts';
import { startControl } from './start.ts';

/** Runs `work` while the cloud listens only on its control socket. */
export async function withClosedCloud<T>(config: Config, work: (cloud: Cloud) => Promise<T>): Promise<T> {
  const log = pino({ level: 'silent' });
  const cloud = await buildCloud({ config, clock: systemClock, log, step: (_name, step) => step() });
  const server = await startControl(cloud);
  try {
    return await work(cloud);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await cloud.api.close();
    await cloud.data.close();
    await cloud.close();
  }
}
