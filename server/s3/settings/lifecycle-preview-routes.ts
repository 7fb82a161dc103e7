/** Previews lifecycle rules: the objects that they would remove. */
import { mayTouch } from '../../calls/principal.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { endOfTick } from '../../platform/concurrency.ts';
import { namedObject, Type } from '../../platform/json/json-schema.ts';
import type { Buckets } from '../../storage/buckets/buckets.ts';
import { LifecycleShape } from '../../storage/buckets/setting-entries.ts';
import { coveredPrefixes, currentExpiry } from '../../storage/lifecycle/lifecycle-rules.ts';
import type { NameListing } from '../../storage/listing/name-listing.ts';
import { BucketPath } from '../../storage/schema.ts';
import { readSetting } from './setting-routes.ts';

export interface LifecyclePreviewDeps {
  readonly buckets: Buckets;
  readonly names: NameListing;
  readonly clock: Clock;
}

/** Maximum objects inspected, to bound the work. */
const LOOKED_AT = 1000;
const SHOWN = 100;

const LeavingObject = namedObject('LeavingObject', {
  name: Type.String(),
  size: Type.Integer(),
  leaves_at: Type.String({ description: 'Time of removal, always midnight UTC' }),
  rule: Type.String({ description: 'Id of the rule that removes the object' }),
});

const LifecyclePreview = namedObject('LifecyclePreview', {
  looked_at: Type.Integer({ description: 'Current objects under the prefixes, at most 1,000' }),
  is_cut: Type.Boolean({ description: 'Whether there are more objects' }),
  due: Type.Integer({ description: 'Number of these objects that would be removed now' }),
  objects: Type.Array(LeavingObject, { description: 'First 100 objects to be removed' }),
});

const PreviewBody = namedObject('LifecyclePreviewBody', { lifecycle: LifecycleShape });

export function lifecyclePreviewRoutes({ buckets, names, clock }: LifecyclePreviewDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/buckets/{name}/lifecycle-preview',
      name: 'previewBucketLifecycle',
      tag: 'storage',
      summary: 'Show which objects lifecycle rules would remove, and when',
      description: 'Rules and objects do not change. Older versions and uploads in progress are ignored.',
      permission: 'storage:read',
      params: BucketPath,
      body: PreviewBody,
      responses: { 200: LifecyclePreview },
      errors: ['bucket_not_found'],
      isRepeatable: true,
      changesNothing: true,
      handler: async ({ principal, params, body }) => {
        const bucket = await buckets.find(principal, params.name);
        const lifecycle = readSetting('lifecycle', body.lifecycle);
        const page = { delimiter: '', after: null };
        const leaving: { name: string; size: number; at: number; rule: string }[] = [];
        let [read, lookedAt, isCut] = [0, 0, false];
        for (const prefix of coveredPrefixes(lifecycle)) {
          // Reads are synchronous, and there may be a thousand prefixes.
          await endOfTick();
          const limit = LOOKED_AT - read;
          const { rows, next } = await names.objects(bucket, { ...page, prefix, limit });
          isCut ||= next !== null || limit === 0;
          // Objects that a limited key must not see cost as much.
          read += rows.length;
          for (const row of rows) {
            if (!mayTouch(principal, bucket.name, row.name)) continue;
            lookedAt++;
            const end = currentExpiry(lifecycle, row);
            if (end) leaving.push({ name: row.name, size: row.size_bytes, at: end.at, rule: end.ruleId });
          }
          if (isCut) break;
        }
        const first = leaving.sort((a, b) => a.at - b.at).slice(0, SHOWN);
        const objects = first.map(({ at, ...each }) => ({ ...each, leaves_at: formatTime(at) }));
        const due = leaving.filter(({ at }) => at <= clock.now()).length;
        return { looked_at: lookedAt, is_cut: isCut, due, objects };
      },
    }),
  ];
}
