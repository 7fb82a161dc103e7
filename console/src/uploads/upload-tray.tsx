/** The tray of uploads in the corner: progress and outcome of each. */
import {
  ArrowPathIcon,
  CheckCircleIcon,
  ChevronDownIcon,
  ChevronUpIcon,
  ExclamationCircleIcon,
  NoSymbolIcon,
  PauseIcon,
  PlayIcon,
  XMarkIcon,
} from '@heroicons/react/24/outline';
import { ActionIcon, Button, CloseButton, Group, Paper, Progress, Text } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { sayBytes, sayName } from '../parts/say.ts';
import { text } from '../texts/text.ts';
import { LARGE_BYTES } from './part-sender.ts';
import { isOpen, type UploadItem, uploadQueue } from './upload-queue.ts';
import classes from './uploads.module.css';

const ROW_PX = 52;
/** Time over which the speed is measured. */
const SPEED_MS = 3000;

export function UploadTray() {
  const { items, halt } = useSyncExternalStore(uploadQueue.subscribe, uploadQueue.snapshot);
  const [isOpen, setOpen] = useState(true);
  const speed = useSpeed(items);
  const isAllDone = items.every(({ state }) => state === 'done');
  // Finished uploads need no space.
  useEffect(() => setOpen(!isAllDone), [isAllDone]);
  if (items.length === 0) return null;
  const count = (wanted: UploadItem['state']) => items.filter(({ state }) => state === wanted).length;
  const done = count('done');
  const failed = count('failed');
  const cancelled = count('cancelled');
  const isBusy = done + failed + cancelled < items.length;
  const total = items.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const sent = items.reduce((sum, { sentBytes }) => sum + sentBytes, 0);
  return (
    <Paper
      component="section"
      withBorder
      shadow="md"
      radius="lg"
      className={classes.tray ?? ''}
      aria-label={text.uploads.title}
    >
      <Group justify="space-between" px="md" py="xs" wrap="nowrap">
        <div>
          <Text role="status" aria-busy={isBusy} size="sm" fw={600}>
            {text.uploads.summary(done, items.length)}
            {failed > 0 && <span className={classes.failed}> · {text.uploads.failed(failed)}</span>}
            {cancelled > 0 && ` · ${text.uploads.cancelled(cancelled)}`}
          </Text>
          {halt === 'connection' && (
            <Text role="alert" size="xs" className={classes.halted ?? ''}>
              {text.uploads.halted}
            </Text>
          )}
          {isBusy && halt === undefined && (
            <Text size="xs" c="dimmed">
              {text.uploads.progress(sayBytes(sent), sayBytes(total), sayBytes(speed))}
            </Text>
          )}
        </div>
        <Group gap={4} wrap="nowrap">
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={isOpen ? text.uploads.fold : text.uploads.unfold}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? <ChevronDownIcon width={18} /> : <ChevronUpIcon width={18} />}
          </ActionIcon>
          {!isBusy && <CloseButton aria-label={text.uploads.clear} onClick={() => uploadQueue.clear()} />}
        </Group>
      </Group>
      <Progress
        value={total === 0 ? Number(!isBusy) * 100 : (sent / total) * 100}
        size={3}
        radius={0}
        aria-label={text.uploads.title}
      />
      {isOpen && <UploadList items={items} />}
      {isOpen && !isAllDone && (
        <Group px="md" py="xs" gap="xs" justify="flex-end">
          {halt === 'connection' && (
            <Button size="compact-sm" variant="default" onClick={uploadQueue.ask}>
              {text.uploads.askNow}
            </Button>
          )}
          {failed + cancelled > 0 && (
            <Button size="compact-sm" variant="default" onClick={() => uploadQueue.retry()}>
              {failed > 0 ? text.uploads.retryAll : text.uploads.retryCancelled}
            </Button>
          )}
          {isBusy && (
            <Button size="compact-sm" variant="default" onClick={() => uploadQueue.cancelAll()}>
              {text.uploads.cancelAll}
            </Button>
          )}
        </Group>
      )}
    </Paper>
  );
}

function UploadList({ items }: { items: readonly UploadItem[] }) {
  const frame = useRef<HTMLElement>(null);
  const ordered = useMemo(() => inOrder(items), [items]);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_PX,
    overscan: 4,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section ref={frame} className={classes.list} tabIndex={0} aria-label={text.uploads.files}>
      <ul className={classes.rows} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const item = ordered[index];
          return item === undefined ? null : <UploadRow key={item.id} item={item} top={start} />;
        })}
      </ul>
    </section>
  );
}

/** Active and failed items first: they would be hard to find among thousands. */
function inOrder(items: readonly UploadItem[]): readonly UploadItem[] {
  const isFirst = ({ state }: UploadItem) => state === 'sending' || state === 'paused';
  const isSecond = ({ state }: UploadItem) => state === 'failed';
  const [first, second] = [items.filter(isFirst), items.filter(isSecond)];
  if (first.length + second.length === 0) return items;
  return [...first, ...second, ...items.filter((item) => !isFirst(item) && !isSecond(item))];
}

function UploadRow({ item, top }: { item: UploadItem; top: number }) {
  const { id, name, sizeBytes, state, sentBytes, error } = item;
  const percent = sizeBytes === 0 ? 0 : Math.floor((sentBytes / sizeBytes) * 100);
  return (
    <li className={classes.row} style={{ transform: `translateY(${top}px)` }}>
      <StateIcon state={state} />
      <div className={classes.words}>
        <Text size="sm" truncate title={name}>
          {sayName(name)}
        </Text>
        <Text size="xs" c={state === 'failed' ? 'error' : 'dimmed'} truncate>
          {state === 'failed' && error instanceof Error && error.message}
          {state === 'sending' && `${percent} %`}
          {state === 'waiting' && text.uploads.waiting}
          {state === 'paused' && text.uploads.paused(percent)}
          {state === 'cancelled' && text.uploads.notStored}
          {state === 'done' && sayBytes(sizeBytes)}
        </Text>
      </div>
      {(state === 'failed' || state === 'cancelled') && (
        <RowButton
          label={text.uploads.retry(name)}
          icon={ArrowPathIcon}
          onClick={() => uploadQueue.retry([id])}
        />
      )}
      {state === 'sending' && sizeBytes >= LARGE_BYTES && (
        <RowButton label={text.uploads.pause(name)} icon={PauseIcon} onClick={() => uploadQueue.pause(id)} />
      )}
      {state === 'paused' && (
        <RowButton label={text.uploads.resume(name)} icon={PlayIcon} onClick={() => uploadQueue.resume(id)} />
      )}
      {isOpen(item) && (
        <RowButton
          label={text.uploads.cancel(name)}
          icon={XMarkIcon}
          onClick={() => uploadQueue.cancel(id)}
        />
      )}
    </li>
  );
}

interface RowButtonProps {
  readonly label: string;
  readonly icon: typeof XMarkIcon;
  readonly onClick: () => void;
}

function RowButton({ label, icon: Icon, onClick }: RowButtonProps) {
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={onClick}>
      <Icon width={16} />
    </ActionIcon>
  );
}

function StateIcon({ state }: { state: UploadItem['state'] }) {
  if (state === 'done') return <CheckCircleIcon width={20} className={classes.done} aria-hidden />;
  if (state === 'cancelled') return <NoSymbolIcon width={20} className={classes.waiting} aria-hidden />;
  if (state === 'paused') return <PauseIcon width={20} className={classes.waiting} aria-hidden />;
  if (state === 'failed') return <ExclamationCircleIcon width={20} className={classes.failed} aria-hidden />;
  return <ArrowPathIcon width={20} className={classes.waiting} aria-hidden />;
}

/** Recent bytes per second. */
function useSpeed(items: readonly UploadItem[]): number {
  const samples = useRef<{ at: number; sent: number }[]>([]);
  const [speed, setSpeed] = useState(0);
  useEffect(() => {
    const now = performance.now();
    const sent = items.reduce((sum, { sentBytes }) => sum + sentBytes, 0);
    const recent = samples.current.filter(({ at, sent: before }) => now - at < SPEED_MS && before <= sent);
    samples.current = [...recent, { at: now, sent }];
    const [first] = samples.current;
    if (first === undefined || now - first.at < 100) return;
    setSpeed(((sent - first.sent) / (now - first.at)) * 1000);
  }, [items]);
  return speed;
}
