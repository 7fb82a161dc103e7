/** The list of buckets: size, cost and settings. */

import { ArchiveBoxIcon, KeyIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Button, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Bucket, EstimateItem } from '../../../../../sdk/index.ts';
import { Empty, Loaded, Page } from '../../../parts/page.tsx';
import { sayBytes, sayCount, sayPrice } from '../../../parts/say.ts';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { AnchorLink, ButtonLink } from '../../../parts/tables/links.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { FIGURES_MS } from '../../../queries.ts';
import { text } from '../../../texts/text.ts';
import { estimateQuery } from '../../billing/queries.ts';
import { bucketsQuery } from '../queries.ts';
import { BucketBadges, BucketMenu } from './bucket-menu.tsx';
import { NewBucketForm } from './new-bucket-form.tsx';

export function BucketsPage() {
  const { create = false } = useSearch({ from: '/shell/storage' });
  const navigate = useNavigate({ from: '/storage' });
  const buckets = useQuery({ ...bucketsQuery, refetchInterval: FIGURES_MS });
  const setCreating = (isOpen: boolean) => navigate({ search: isOpen ? { create: true } : {} });
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
            <BucketTable buckets={all} />
          )
        }
      </Loaded>
      <NewBucketForm isOpen={create} onClose={() => setCreating(false)} />
    </Page>
  );
}

function BucketTable({ buckets }: { buckets: readonly Bucket[] }) {
  const estimate = useQuery({ ...estimateQuery, refetchInterval: FIGURES_MS });
  const price = ({ name }: Bucket) => {
    const isStored = ({ meter, resource_id }: EstimateItem) => meter === 'storage' && resource_id === name;
    return estimate.data && sayPrice(estimate.data.items.find(isStored)?.per_month ?? 0);
  };
  const columns: readonly Column<Bucket>[] = [
    {
      name: text.storage.name,
      cell: (bucket) => (
        <Group gap="xs">
          <AnchorLink to="/storage/$bucket" params={{ bucket: bucket.name }} fw={550}>
            {bucket.name}
          </AnchorLink>
          <BucketBadges bucket={bucket} />
        </Group>
      ),
    },
    { name: text.storage.objects, cell: ({ object_count: count }) => sayCount(count) },
    {
      name: text.storage.size,
      title: (bucket) => (bucket.versioning ? text.storage.withVersions(sayBytes(bucket.total_size)) : ''),
      cell: ({ size }) => sayBytes(size),
    },
    { name: text.storage.perMonth, cell: price },
    { name: text.storage.created, cell: ({ created_at: at }) => <When at={at} /> },
    { name: text.storage.actions, isActions: true, cell: (bucket) => <BucketMenu bucket={bucket} /> },
  ];
  return <DataTable columns={columns} rows={buckets} keyOf={({ name }) => name} />;
}
