import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Config, loadConfig } from './config.ts';
import { drillConfig } from './drill-config.ts';

/** Settings that lead out of a data directory according to their names: to other hosts, files and users. */
const LEADING_OUT = /(?:Url|Target|File|Cert|Key|Domain)$/;
/** They lead nowhere in a cloud without listeners. */
const HARMLESS: readonly (keyof Config)[] = ['nodeUrl', 'adminKey', 's3Domain'];

test('no setting of a drill leads out of its directory', () => {
  const live = { ...loadConfig({}), dataDir: '/live', vmUidBase: 100_000 } as Config;
  const filled = Object.fromEntries(
    Object.entries(live).map(([name, value]) => [name, LEADING_OUT.test(name) ? 'somewhere' : value]),
  ) as unknown as Config;
  const config = drillConfig(filled, { dataDir: '/drill', vmUidBase: 7 });
  assert.deepEqual(
    Object.entries(config)
      .filter(([name, value]) => value === 'somewhere' && !HARMLESS.includes(name as keyof Config))
      .map(([name]) => name),
    [],
  );
  assert.deepEqual(
    [config.dataDir, config.vmUidBase, config.publishedPorts, config.imageMirror],
    ['/drill', 7, 'off', 'off'],
  );
});
