/** Shared links as a table: downloads, expiry, and a button that ends one now. */
import { LinkIcon } from '@heroicons/react/24/outline';
import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Share } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { CopyIcon } from '../../../parts/commands/copy.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { Empty, Loaded } from '../../../parts/page.tsx';
import { sayName } from '../../../parts/say.ts';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { sharingText } from '../../../texts/sharing-text.ts';
import { text } from '../../../texts/text.ts';
import { sharesQuery } from '../queries.ts';

const words = sharingText;

/** All links to the contents of a bucket. */
export function LinksTab({ bucket }: { bucket: string }) {
  const shares = useQuery(sharesQuery);
  return (
    <Loaded query={shares}>
      {(all) => {
        const own = all.filter((share) => share.bucket === bucket);
        if (own.length > 0) return <ShareList shares={own} showsName />;
        return (
          <Empty icon={LinkIcon} title={words.none}>
            {words.noneLead}
          </Empty>
        );
      }}
    </Loaded>
  );
}

export function ShareList({ shares, showsName }: { shares: readonly Share[]; showsName: boolean }) {
  const name: Column<Share> = {
    name: text.storage.name,
    cell: (share) => nameOf(share),
    title: nameOf,
  };
  const columns: readonly Column<Share>[] = [
    ...(showsName ? [name] : []),
    { name: words.state, cell: (share) => <State share={share} /> },
    { name: words.ends, cell: ({ expires_at: at }) => (at === null ? words.never : <When at={at} />) },
    { name: words.downloads, cell: ({ downloads, max_downloads: most }) => words.used(downloads, most) },
    {
      name: text.storage.actions,
      isActions: true,
      cell: (share) => (
        <Group gap="xs" wrap="nowrap" justify="flex-end">
          <CopyIcon value={share.url} label={words.copyOne(nameOf(share))} />
          <End share={share} />
        </Group>
      ),
    },
  ];
  return (
    <Stack>
      <DataTable columns={columns} rows={shares} keyOf={({ share_id: id }) => id} />
    </Stack>
  );
}

function State({ share: { state, has_password: hasPassword } }: { share: Share }) {
  return (
    <Group gap={6} wrap="nowrap">
      <Badge variant="light" color={state === 'active' ? 'teal' : 'gray'}>
        {words.states[state]}
      </Badge>
      {hasPassword && (
        <Text size="sm" c="dimmed">
          {words.withPassword}
        </Text>
      )}
    </Group>
  );
}

/** Ends at once, without a question: a new link is quickly created. */
function End({ share }: { share: Share }) {
  const end = useMutation({
    mutationFn: () => cloud.endShare(share.share_id),
    meta: { shown: true, invalidates: [sharesQuery] },
    onSuccess: () => showDone(words.ended(nameOf(share))),
  });
  return (
    <Button
      size="compact-sm"
      variant="default"
      loading={end.isPending}
      aria-label={words.endOne(nameOf(share))}
      onClick={() => end.mutate()}
    >
      {words.end}
    </Button>
  );
}

const nameOf = ({ bucket, name }: Share) => sayName(name === '' ? bucket : name);
