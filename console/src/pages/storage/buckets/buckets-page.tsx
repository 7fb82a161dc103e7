/** The list of buckets: size, cost and settings. */

import { ArchiveBoxIcon, KeyIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Button, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Bucket, EstimateItem } from '../../../../../sdk/index.ts';
import { Empty, Loaded, Page } from '../../../parts/page.tsx';
import { sayBytes, sayCount, sayPrice } from '../../../parts/say.ts';
import type { Column } from '../../../parts/tables/data-table.tsx';
import { AnchorLink, ButtonLink } from '../../../parts/tables/links.tsx';
import { ListTable } from '../../../parts/tables/list-table.tsx';
import type { ListView } from '../../../parts/tables/list-view.ts';
import { When } from '../../../parts/tables/when.tsx';
import { FIGURES_MS } from '../../../queries.ts';
import { text } from '../../../texts/text.ts';
import { estimateQuery } from '../../billing/queries.ts';
import { bucketsQuery } from '../queries.ts';
import { BucketBadges, BucketMenu } from './bucket-menu.tsx';
import { NewBucketForm } from './new-bucket-form.tsx';

export function BucketsPage() {
  const { create = false, ...view } = useSearch({ from: '/shell/storage' });
  const navigate = useNavigate({ from: '/storage' });
  const buckets = useQuery({ ...bucketsQuery, refetchInterval: FIGURES_MS });
  const setCreating = (isOpen: boolean) => navigate({ search: isOpen ? { ...view, create: true } : view });
  const createButton = (
    <Button leftSection={<PlusIcon width={18} />} onClick={() => setCreating(true)}>
      {text.storage.createBucket}
    </Button>
  );
  return (
    <Page
      title={text.storage.title}
      lead={text.storage.lead}
      actions={
        <>
          <ButtonLink to="/storage/s3" variant="default" leftSection={<KeyIcon width={18} />}>
            {text.storage.openS3}
          </ButtonLink>
          {createButton}
        </>
      }
    >
      <Loaded query={buckets}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon={ArchiveBoxIcon} title={text.storage.noBuckets} action={createButton}>
              {text.storage.noBucketsLead}
            </Empty>
          ) : (
            <BucketTable buckets={all} view={view} />
          )
        }
      </Loaded>
      <NewBucketForm isOpen={create} onClose={() => setCreating(false)} />
    </Page>
  );
}

function BucketTable({ buckets, view }: { buckets: readonly Bucket[]; view: ListView }) {
  const { data: estimate } = useQuery({ ...estimateQuery, refetchInterval: FIGURES_MS });
  const navigate = useNavigate({ from: '/storage' });
  const columns = useMemo(() => columnsWith(estimate?.items), [estimate?.items]);
  return (
    <ListTable
      columns={columns}
      rows={buckets}
      keyOf={({ name }) => name}
      nameOf={({ name }) => name}
      textOf={({ name }) => name}
      view={view}
      onView={(search) => navigate({ search, replace: true })}
    />
  );
}

/** `items`: the costs of the account; undefined: not read yet. */
function columnsWith(items: readonly EstimateItem[] | undefined): readonly Column<Bucket>[] {
  const stored = (items ?? []).filter(({ meter }) => meter === 'storage');
  const prices = new Map(stored.map(({ resource_id: bucket, per_month: price }) => [bucket, price]));
  return [
    {
      name: text.storage.name,
      id: 'name',
      value: ({ name }) => name,
      cell: (bucket) => (
        <Group gap="xs">
          <AnchorLink to="/storage/$bucket" params={{ bucket: bucket.name }} fw={550}>
            {bucket.name}
          </AnchorLink>
          <BucketBadges bucket={bucket} />
        </Group>
      ),
    },
    {
      name: text.storage.objects,
      id: 'objects',
      value: ({ object_count: count }) => count,
      cell: ({ object_count: count }) => sayCount(count),
    },
    {
      name: text.storage.size,
      id: 'size',
      value: ({ size }) => size,
      title: (bucket) => (bucket.versioning ? text.storage.withVersions(sayBytes(bucket.total_size)) : ''),
      cell: ({ size }) => sayBytes(size),
    },
    {
      name: text.storage.perMonth,
      id: 'price',
      value: ({ name }) => Number(prices.get(name) ?? 0),
      cell: ({ name }) => items && sayPrice(prices.get(name) ?? 0),
    },
    {
      name: text.storage.created,
      id: 'created',
      value: ({ created_at: at }) => at,
      cell: ({ created_at: at }) => <When at={at} />,
    },
    { name: text.storage.actions, isActions: true, cell: (bucket) => <BucketMenu bucket={bucket} /> },
  ];
}
