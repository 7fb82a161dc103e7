/** The change log that was built with this console, so that it needs no network. */

import { Anchor, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import changes from '../../../../../CHANGELOG.md?raw';
import { MarkdownFrame } from '../../../parts/markdown-frame.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { text } from '../../../texts/text.ts';
import { pointsQuery } from '../../recovery/queries.ts';
import style from './release-notes.module.css';

/** Relative links to other project files do not work here. */
const NOTES = changes.replace(/\[([^\]]+)\]\((?!https?:)[^)]+\)/g, '$1');

/** States in which a point can be restored whole. */
const SOUND = ['complete', 'verified', 'drilled'];

export function ReleaseNotes() {
  return (
    <Stack className={style.notes}>
      <Text size="sm">{text.administration.noLookOut}</Text>
      <LastPoint />
      <MarkdownFrame source={NOTES} title={text.administration.whatIsNew} />
    </Stack>
  );
}

/** An upgrade can be undone only with a recovery point made before it. */
function LastPoint() {
  const { data: points } = useQuery(pointsQuery);
  if (points === undefined) return null;
  const { lastPoint, noPoint, makePoint } = text.administration;
  const last = points.find(({ state }) => SOUND.includes(state));
  return (
    <Text size="sm">
      {last === undefined ? noPoint : lastPoint} {last !== undefined && <When at={last.completed_at} />}{' '}
      <Anchor component={Link} to="/recovery" inherit underline="always">
        {makePoint}
      </Anchor>
    </Text>
  );
}
