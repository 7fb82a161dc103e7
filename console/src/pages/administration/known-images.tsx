/** The list of known images, which are downloaded from their publishers by name. */
import { Button, Progress, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { KnownImage } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Mark } from '../../parts/mark.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { StateBadge } from '../../parts/tables/state-badge.tsx';
import { knownImagesText as words } from '../../texts/known-images-text.ts';
import { text } from '../../texts/text.ts';
import { imagesQuery, knownImagesQuery } from './queries.ts';

const { administration } = text;
const TONES = { none: 'quiet', importing: 'moving', ready: 'good', failed: 'bad' } as const;

export function KnownImages() {
  const known = useQuery(knownImagesQuery);
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {words.title}
      </Title>
      <Text c="dimmed">{words.lead}</Text>
      <Loaded query={known}>
        {(all) => <DataTable columns={COLUMNS} rows={all} keyOf={({ short_name: name }) => name} />}
      </Loaded>
    </Stack>
  );
}

const COLUMNS: readonly Column<KnownImage>[] = [
  { name: administration.image, cell: (known) => <Name known={known} /> },
  { name: administration.state, cell: (known) => <State known={known} /> },
  { name: administration.storage, isNumber: true, cell: sizeOf },
  { name: words.login, isMono: true, cell: ({ login_user: user }) => words.logins(user) },
  { name: administration.source, cell: (known) => <Source known={known} /> },
  { name: administration.actions, isActions: true, cell: (known) => <Actions known={known} /> },
];

function sizeOf({ image, about_bytes: about }: KnownImage): string {
  return image?.size == null ? words.about(sayBytes(about)) : sayBytes(image.size);
}

function Name({ known: { title, short_name } }: { known: KnownImage }) {
  return (
    <>
      <Mark name={title} />
      {title}
      <Text className="mono" size="xs" c="dimmed">
        {short_name}
      </Text>
    </>
  );
}

function State({ known: { image, title } }: { known: KnownImage }) {
  const state = image?.state ?? 'none';
  return (
    <>
      <StateBadge tone={TONES[state]} word={words.state[state]} />
      {image?.state === 'importing' && <Fetched title={title} progress={image.progress} />}
      {image?.state_reason != null && <Text size="xs">{image.state_reason.message}</Text>}
    </>
  );
}

type ImageProgress = NonNullable<KnownImage['image']>['progress'];

function Fetched({ title, progress }: { title: string; progress: ImageProgress }) {
  if (progress === null) return <Text size="xs">{words.waiting}</Text>;
  const { percent, bytes, total_bytes: total } = progress;
  return (
    <>
      <Progress value={percent} mt={4} aria-label={words.progressOf(title)} />
      <Text size="xs">{words.progress(percent, sayBytes(bytes), sayBytes(total))}</Text>
    </>
  );
}

function Source({ known: { url, checked_by } }: { known: KnownImage }) {
  return (
    <>
      <span className="mono">{new URL(url).host}</span>
      <Text size="xs" c="dimmed">
        {words.checkedBy(checked_by.split('/').at(-1) ?? checked_by)}
      </Text>
    </>
  );
}

function Actions({ known: { short_name, title, image } }: { known: KnownImage }) {
  const meta = { shown: true, invalidates: [imagesQuery, knownImagesQuery, { queryKey: ['images'] }] };
  const fetching = useMutation({ mutationFn: () => cloud.adminFetchImage(short_name), meta });
  const cancelling = useMutation({
    mutationFn: async () => image && cloud.adminDeleteImage(image.image_id),
    meta,
  });
  if (image?.state === 'importing')
    return (
      <Button
        size="compact-sm"
        variant="default"
        aria-label={words.cancelOne(title)}
        loading={cancelling.isPending}
        onClick={() => cancelling.mutate()}
      >
        {words.cancel}
      </Button>
    );
  const isReady = image?.state === 'ready';
  return (
    <Button
      size="compact-sm"
      variant={isReady ? 'default' : 'filled'}
      aria-label={isReady ? words.againOne(title) : words.fetchOne(title)}
      loading={fetching.isPending}
      onClick={() => fetching.mutate()}
    >
      {isReady ? words.again : words.fetch}
    </Button>
  );
}
