import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkBands } from './band-rules.ts';
import { locations, sample } from './sample.ts';

/** One import from one file in another: refused or not. */
const CASES: readonly [from: string, specifier: string, refused: boolean][] = [
  ['server/storage/objects.ts', '../drivers/blobs-file.ts', true],
  ['server/storage/objects.ts', '../http/response.ts', true],
  ['server/storage/objects.ts', '../http/route.ts', true],
  ['server/storage/routes.ts', '../http/route.ts', false],
  ['server/storage/schema.ts', '../http/route.ts', false],
  ['server/compute/images/image-routes.ts', '../../http/route.ts', false],
  ['server/compute/images/images.ts', '../../http/route.ts', true],
  ['server/storage/routes.ts', '../http/list-page.ts', false],
  ['server/storage/objects.ts', '../http/list-page.ts', true],
  ['server/storage/objects.ts', '../accounts/store.ts', true],
  ['server/storage/objects.ts', '../accounts/accounts.ts', false],
  ['server/storage/objects.ts', './store.ts', false],
  ['server/calls/idempotency.ts', './idempotency-store.ts', false],
  ['server/storage/objects.ts', '../platform/errors.ts', false],
  ['server/http/edge.ts', '../drivers/blobs-file.ts', true],
  ['server/http/edge.ts', '../accounts/store.ts', true],
  ['server/http/edge.ts', '../calls/idempotency-store.ts', true],
  ['server/http/edge.ts', '../calls/principal.ts', false],
  ['server/http/edge.ts', '../metadata/secrets-store.ts', true],
  ['server/metadata/sample-history.ts', './samples-store.ts', false],
  ['server/platform/version.ts', '../../package.json', false],
  ['server/platform/clock.ts', './errors.ts', false],
  ['server/platform/host/host-programs.ts', '../config/config.ts', false],
  ['server/config/config.ts', '../platform/errors.ts', true],
  ['server/platform/jobs.ts', '../metadata/metadata.ts', true],
  ['server/calls/operations.ts', '../metadata/metadata.ts', false],
  ['server/calls/operations.ts', '../accounts/accounts.ts', true],
  ['server/calls/operations.ts', '../http/response.ts', true],
  ['server/http/edge.ts', 'fastify', false],
  ['server/storage/routes.ts', 'fastify', true],
  ['server/storage/objects.ts', 'better-sqlite3', true],
  ['server/drivers/metadata-sqlite/writer.ts', 'better-sqlite3', false],
  ['server/drivers/blobs-file.ts', '../storage/blobs.ts', false],
  ['server/drivers/blobs-file.ts', '../storage/routes.ts', true],
  ['server/drivers/blobs-file.ts', '../http/edge.ts', true],
  ['server/drivers/host-process/cgroups.ts', '../qemu/guest-launcher.ts', true],
  ['server/drivers/host-process/cgroups.ts', './process-identity.ts', false],
  ['server/drivers/qemu/guest-launcher.ts', '../host-process/cgroups.ts', false],
  ['server/metadata/migrate.ts', '../storage/objects.ts', true],
  ['server/platform/errors.ts', '../storage/objects.ts', true],
  ['server/left-over.ts', './storage/objects.ts', true],
  ['server/main.ts', './drivers/blobs-file.ts', true],
  ['server/main.ts', './commands/doctor.ts', false],
  ['server/cloud/cloud.ts', '../drivers/blobs-file.ts', false],
  ['server/commands/scrub.ts', '../drivers/blobs-file.ts', false],
  ['server/testing/cloud.ts', '../drivers/blobs-file.ts', false],
  ['server/storage/objects.test.ts', '../drivers/blobs-file.ts', false],
  ['server/storage/objects.ts', '../../test/acceptance/client.ts', true],
  ['test/acceptance/upload.test.ts', '../../server/platform/errors.ts', true],
  ['sdk/index.ts', '../server/platform/errors.ts', true],
  ['scripts/openapi.ts', '../server/cloud/cloud.ts', false],
  ['server/storage/objects.ts', '../../libs/net/index.ts', false],
  ['server/storage/objects.ts', '../../libs/net/packets.ts', true],
  ['server/cloud/cloud.ts', '../../libs/net/packets.ts', true],
  ['server/storage/objects.test.ts', '../../libs/net/packets.ts', true],
  ['cli/main.ts', '../libs/s3-wire/index.ts', false],
  ['cli/main.ts', '../libs/s3-wire/xml.ts', true],
  ['libs/net/gateway.ts', './packets.ts', false],
  ['libs/net/gateway.ts', '../s3-wire/index.ts', false],
  ['libs/net/gateway.ts', '../s3-wire/xml.ts', true],
  ['libs/net/gateway.ts', '../../server/platform/clock.ts', true],
  ['libs/net/gateway.test.ts', '../../server/platform/clock.ts', true],
  ['libs/net/gateway.test.ts', '../../server/testing/random.ts', false],
];

describe('imports between bands', () => {
  for (const [from, specifier, refused] of CASES) {
    test(`${from} → ${specifier} is ${refused ? 'refused' : 'allowed'}`, () => {
      const files = sample({ [from]: `// first line\nimport { thing } from '${specifier}';\n` });
      assert.deepEqual(locations(checkBands(files)), refused ? [`${from}:2`] : []);
    });
  }

  test('types, re-exports, dynamic and many-line imports count as well', () => {
    const path = 'server/storage/objects.ts';
    const driver = '../drivers/x.ts';
    for (const text of [
      `import type { X } from '${driver}';`,
      `export { X } from '${driver}';`,
      `const x = await import('${driver}');`,
      `import {\n  X,\n  type Y,\n} from '${driver}';`,
      `import '${driver}';`,
    ]) {
      assert.equal(checkBands(sample({ [path]: text })).length, 1, text);
    }
    assert.deepEqual(checkBands(sample({ [path]: `// import { X } from '${driver}';` })), []);
  });
});
