/** The recovery points from which a resource can be restored. */
import { ClockIcon } from '@heroicons/react/24/outline';
import { NativeSelect, type NativeSelectProps } from '@mantine/core';
import type { ReactNode } from 'react';
import { Empty, Loaded, type Read } from '../page.tsx';

interface Point {
  readonly point_id: string;
  readonly created_at: string;
}

interface PointsProps<P extends Point> {
  readonly query: Read<readonly P[]>;
  readonly words: { readonly none: string; readonly noneLead: string };
  readonly children: (points: readonly P[]) => ReactNode;
}

/** Shows `children` if there are points. */
export function RecoveryPoints<P extends Point>({ query, words, children }: PointsProps<P>) {
  return (
    <Loaded query={query}>
      {(points) =>
        points.length === 0 ? (
          <Empty icon={ClockIcon} title={words.none}>
            {words.noneLead}
          </Empty>
        ) : (
          children(points)
        )
      }
    </Loaded>
  );
}

interface PointSelectProps extends NativeSelectProps {
  readonly points: readonly Point[];
  readonly words: { readonly from: string; readonly at: (time: string) => string };
}

export function PointSelect({ points, words, ...field }: PointSelectProps) {
  const data = points.map(({ point_id, created_at }) => ({ value: point_id, label: words.at(created_at) }));
  return <NativeSelect label={words.from} data={data} {...field} />;
}
