/** Restores the buckets of an account from a recovery point for another account. */

import type { AccountResource, AccountResources } from '../../calls/account-resources.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { plural } from '../../platform/plural.ts';
import type { PointRestores } from '../points/point-restores.ts';
import type { BucketRestore } from '../schema.ts';
import { type BucketRow, BucketSql } from './bucket-sql.ts';

const PAGE = 500;

export function accountBuckets(restores: PointRestores): AccountResources {
  return {
    list: listBuckets,
    restore: async (call, { resource: { name }, ...from }) => {
      return { id: name, lacks: lacksOf(await restores.restoreFrom(call, name, from)) };
    },
  };
}

async function listBuckets(reads: Reads, accountId: number): Promise<AccountResource[]> {
  const store = new BucketSql(reads);
  const resources: AccountResource[] = [];
  for (let after = 0; ; ) {
    const page: BucketRow[] = await store.list(accountId, after, PAGE);
    for (const { name, total_bytes } of page)
      resources.push({ kind: 'bucket', id: name, name, sizeBytes: total_bytes });
    after = page.at(-1)?.id ?? after;
    if (page.length < PAGE) return resources;
  }
}

/** Settings that are left out are not reported; the guide explains why. */
function lacksOf({ refusals, refused, kept }: BucketRestore): string[] {
  const named = refusals.map(({ name, reason }) => `${name}: ${reason}`);
  const more = refused - named.length;
  return [
    ...named,
    ...(more > 0 ? [`and ${plural(more, 'more version')}`] : []),
    ...(kept > 0 ? [`${plural(kept, 'version')} of names that now have other versions`] : []),
  ];
}
