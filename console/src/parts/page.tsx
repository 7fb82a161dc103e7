/** The frame of every page: title, actions, tab name; while it loads, and when it is empty. */
import { Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useRouterState } from '@tanstack/react-router';
import {
  type ComponentType,
  lazy,
  type ReactNode,
  type RefObject,
  Suspense,
  type SVGProps,
  useEffect,
  useRef,
} from 'react';
import { Refused } from './forms/warning.tsx';
import classes from './parts.module.css';

/** Not in the first load; optional if it fails to load. */
const CopyPageCommand = lazy<() => ReactNode>(() =>
  import('./commands/copy-command.tsx').then(
    (made) => ({ default: made.CopyPageCommand }),
    () => ({ default: () => null }),
  ),
);

interface PageProps {
  readonly title: string;
  /** Shown above the title: the way back. */
  readonly trail?: ReactNode;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, trail, lead, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Cloudlet`;
  }, [title]);
  useFocusOnArrival(heading);
  return (
    <Stack gap="lg">
      <div>
        {trail}
        <Group justify="space-between" align="flex-start" gap="sm">
          <div style={{ minWidth: 0, maxWidth: '100%' }}>
            <Title ref={heading} order={1} tabIndex={-1}>
              {title}
            </Title>
            {lead !== undefined && (
              <Text c="dimmed" maw="62ch" mt={4}>
                {lead}
              </Text>
            )}
          </div>
          <Group gap="xs">
            <Suspense fallback={null}>
              <CopyPageCommand />
            </Suspense>
            {actions}
          </Group>
        </Group>
      </div>
      {children}
    </Stack>
  );
}

/** The last path that received focus; the first page is not announced. */
let focusedPath = location.pathname;

/** Moves the focus to the heading after navigation, for screen readers and Tab. */
function useFocusOnArrival(heading: RefObject<HTMLElement | null>): void {
  // Not the current location, which changes while the previous page is still shown.
  const path = useRouterState({
    select: ({ resolvedLocation }) => resolvedLocation?.pathname ?? focusedPath,
  });
  useEffect(() => {
    if (path === focusedPath) return;
    focusedPath = path;
    heading.current?.focus({ preventScroll: true });
  }, [path, heading]);
}

export interface Read<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** Shows `children` when the data is loaded, a skeleton before, and errors with a retry. */
export function Loaded<T>({ query, children }: { query: Read<T>; children: (data: T) => ReactNode }) {
  const { data, error, refetch } = query;
  if (data !== undefined) return children(data);
  if (error !== null) return <Refused error={error} onRetry={() => refetch()} />;
  return (
    <Stack gap="sm" aria-busy="true">
      {['a', 'b', 'c', 'd'].map((line) => (
        <Skeleton key={line} height={20} radius="sm" />
      ))}
    </Stack>
  );
}

interface EmptyProps {
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
  /** 1: the page has no other title. */
  readonly order?: 1 | 2;
}

/** An empty page: what it is for, and the first step. */
export function Empty({ icon: Icon, title, children, action, order = 2 }: EmptyProps) {
  return (
    <Stack align="center" gap="xs" className={classes.empty}>
      <Icon className={classes.emptyIcon} aria-hidden />
      <Title order={order} size="h2">
        {title}
      </Title>
      <Text c="dimmed" ta="center" maw="46ch">
        {children}
      </Text>
      {action}
    </Stack>
  );
}
