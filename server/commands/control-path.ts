/** Where the running server listens for the operator. */
import { join } from 'node:path';
import type { Config } from '../config/config.ts';

export function controlPath(config: Config): string {
  return join(config.dataDir, 'control.sock');
}
