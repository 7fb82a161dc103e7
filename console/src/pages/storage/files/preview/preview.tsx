/**
 * A preview of an object. Images, audio, video and PDF come from the data origin by a link valid
 * for one hour; the data origin's policy puts the PDF's frame in a sandbox. Text is shown as plain
 * text.
 */

import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { StorageObjectDetails } from '../../../../../../sdk/index.ts';
import { cloud } from '../../../../cloud.ts';
import { Refused } from '../../../../parts/forms/warning.tsx';
import { lazyPart } from '../../../../parts/lazy-part.tsx';
import { sayBytes } from '../../../../parts/say.ts';
import { text } from '../../../../texts/text.ts';
import classes from '../../storage.module.css';

const MarkdownFrame = lazyPart(() =>
  import('../../../../parts/markdown-frame.tsx').then((made) => made.MarkdownFrame),
);
const CsvPreview = lazyPart(() => import('./csv-preview.tsx').then((made) => made.CsvPreview));
const ParquetPreview = lazyPart(() => import('./parquet-preview.tsx').then((made) => made.ParquetPreview));
const LINK_SECONDS = 3600;
/** The beginning of a table is enough for its first rows. */
const CSV_MAX_BYTES = 2 ** 20;
const TEXT_MAX_BYTES = 512 * 1024;
const TEXT_TYPE =
  /^(text\/|application\/(json|xml|yaml|x-yaml|toml|javascript|x-sh|sql|x-ndjson)\b|[^;]*\+(json|xml)\b)/;

type Linked = 'image' | 'video' | 'audio' | 'pdf';
type Kind = Linked | 'text' | 'csv' | 'parquet' | 'none';

function kindOf(object: StorageObjectDetails): Kind {
  const { name, mime_type, size, is_delete_marker } = object;
  if (is_delete_marker || size === 0) return 'none';
  const [main] = mime_type.split('/', 1);
  if (main === 'image' || main === 'video' || main === 'audio') return main;
  if (mime_type === 'application/pdf') return 'pdf';
  if (/^text\/(csv|tab-separated-values)\b/.test(mime_type) || /\.(csv|tsv)$/i.test(name)) return 'csv';
  if (mime_type === 'application/vnd.apache.parquet' || /\.parquet$/i.test(name)) return 'parquet';
  return isText(object) ? 'text' : 'none';
}

/** Text short enough to be shown. */
export function isText({ mime_type, size }: Pick<StorageObjectDetails, 'mime_type' | 'size'>): boolean {
  return TEXT_TYPE.test(mime_type) && size <= TEXT_MAX_BYTES;
}

function whyNone({ mime_type, size, is_delete_marker }: StorageObjectDetails): string {
  if (is_delete_marker) return text.storage.isDeleted;
  if (size === 0) return text.storage.isEmpty;
  return TEXT_TYPE.test(mime_type)
    ? text.storage.tooLongToShow(sayBytes(TEXT_MAX_BYTES))
    : text.storage.noPreview;
}

export function Preview({ object }: { object: StorageObjectDetails }) {
  const kind = kindOf(object);
  if (kind === 'none') {
    return (
      <Text size="sm" c="dimmed">
        {whyNone(object)}
      </Text>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section className={classes.preview} tabIndex={0} aria-label={text.storage.preview}>
      {kind === 'text' ? (
        <TextPreview object={object} />
      ) : kind === 'csv' ? (
        <TablePreview object={object} />
      ) : kind === 'parquet' ? (
        <ParquetPreview object={object} />
      ) : (
        <LinkedPreview object={object} kind={kind} />
      )}
    </section>
  );
}

function LinkedPreview({ object, kind }: { object: StorageObjectDetails; kind: Linked }) {
  const { id, version_id, bucket, name } = object;
  const { data, error } = useQuery({
    queryKey: ['files', bucket, 'link', id, version_id],
    queryFn: () => cloud.getCdnUrl(id, { expires_in: LINK_SECONDS, version_id }),
    staleTime: (LINK_SECONDS / 2) * 1000,
  });
  if (data === undefined) return <Refused error={error} />;
  if (kind === 'image') return <img src={data.cdn_url} alt={name} />;
  // Chromium shows no PDF in a frame with `sandbox`; the data origin's header has the same effect.
  if (kind === 'pdf') return <iframe src={`${data.cdn_url}#navpanes=0`} title={name} />;
  // biome-ignore lint/a11y/useMediaCaption: nobody gave any
  return kind === 'video' ? <video src={data.cdn_url} controls /> : <audio src={data.cdn_url} controls />;
}

function TextPreview({ object }: { object: StorageObjectDetails }) {
  const { id, version_id, bucket, name, mime_type } = object;
  const { data, error } = useQuery({
    queryKey: ['files', bucket, 'content', id, version_id],
    queryFn: async ({ signal }) => (await cloud.downloadObject(id, { version_id }, { signal })).text(),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
  if (data === undefined) return <Refused error={error} />;
  const plain = <pre className="mono">{mime_type.startsWith('application/json') ? pretty(data) : data}</pre>;
  if (!mime_type.startsWith('text/markdown')) return plain;
  return <MarkdownFrame source={data} title={name} />;
}

function TablePreview({ object }: { object: StorageObjectDetails }) {
  const { id, version_id, bucket, size } = object;
  const { data, error } = useQuery({
    queryKey: ['files', bucket, 'beginning', id, version_id],
    queryFn: async ({ signal }) => beginningOf(await cloud.downloadObject(id, { version_id }, { signal })),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
  if (data === undefined) return <Refused error={error} />;
  return (
    <div className={classes.tablePreview}>
      <CsvPreview source={data} isWhole={size <= CSV_MAX_BYTES} />
    </div>
  );
}

/** The rest is not sent. */
async function beginningOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [source, bytes] = ['', 0];
  const reader = body?.getReader();
  while (reader !== undefined && bytes < CSV_MAX_BYTES) {
    const { done, value } = await reader.read();
    if (done) return source + decoder.decode();
    bytes += value.length;
    source += decoder.decode(value, { stream: true });
  }
  await reader?.cancel();
  return source;
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
