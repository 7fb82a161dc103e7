/** Operators on dates, with the examples of their pages in MongoDB's manual. */
import { describe, test } from 'node:test';
import { ObjectId, Timestamp } from 'bson';
import { type Case, date, Examples, fails, long } from '../../testing/expression-cases.ts';

const AT = date('2014-01-01T08:15:39.736Z');
const ZONE = 'America/New_York';

const DATES: Readonly<Record<string, readonly Case[]>> = {
  $year: [
    [{ $year: AT }, 2014],
    [{ $year: { date: date('2017-01-01T00:30:00Z'), timezone: ZONE } }, 2016],
    [{ $year: '$none' }, null],
    [{ $year: 'a' }, fails(16006)],
  ],
  $month: [
    [{ $month: AT }, 1],
    [{ $month: new ObjectId('58c7cba47bbadf523cf2c313') }, 3],
  ],
  $dayOfMonth: [[{ $dayOfMonth: { date: date('August 14, 2011 UTC'), timezone: 'America/Chicago' } }, 13]],
  $hour: [
    [{ $hour: AT }, 8],
    [{ $hour: { date: date('1998-11-07T00:00:00Z'), timezone: '-0400' } }, 20],
    [{ $hour: { date: AT, timezone: 'Nowhere/Else' } }, fails(40485)],
  ],
  $minute: [[{ $minute: { date: AT, timezone: '+0430' } }, 45]],
  $second: [[{ $second: AT }, 39]],
  $millisecond: [[{ $millisecond: AT }, 736]],
  $dayOfYear: [
    [{ $dayOfYear: AT }, 1],
    [{ $dayOfYear: date('2016-12-31T00:00:00Z') }, 366],
  ],
  $dayOfWeek: [[{ $dayOfWeek: AT }, 4]],
  $week: [
    [{ $week: AT }, 0],
    [{ $week: date('2016-01-03T00:00:00Z') }, 1],
  ],
  $isoWeek: [
    [{ $isoWeek: date('2016-01-04T00:00:00Z') }, 1],
    [{ $isoWeek: date('2016-01-01T00:00:00Z') }, 53],
    [{ $isoWeek: { date: date('1998-11-02T00:00:00Z'), timezone: '-0500' } }, 44],
  ],
  $isoWeekYear: [[{ $isoWeekYear: date('2016-01-01T00:00:00Z') }, long(2015)]],
  $isoDayOfWeek: [
    [{ $isoDayOfWeek: date('2016-01-01T00:00:00Z') }, 5],
    [{ $isoDayOfWeek: date('2016-01-03T00:00:00Z') }, 7],
  ],
  $dateToString: [
    [{ $dateToString: { format: '%Y-%m-%d', date: AT } }, '2014-01-01'],
    [{ $dateToString: { format: '%H:%M:%S:%L%z', date: AT, timezone: ZONE } }, '03:15:39:736-0500'],
    [{ $dateToString: { format: '%H:%M:%S:%L%z', date: AT, timezone: '+04:30' } }, '12:45:39:736+0430'],
    [{ $dateToString: { format: '%Z', date: AT, timezone: ZONE } }, '-300'],
    [{ $dateToString: { format: '%j %u %w %U %V %G %%', date: AT } }, '001 3 4 00 01 2014 %'],
    [{ $dateToString: { date: AT } }, '2014-01-01T08:15:39.736Z'],
    [{ $dateToString: { date: null, onNull: 'none' } }, 'none'],
    [{ $dateToString: { date: null } }, null],
    [{ $dateToString: { date: AT, format: '%q' } }, fails(18536)],
  ],
  $dateToParts: [
    [
      { $dateToParts: { date: date('2017-01-01T01:29:09.123Z') } },
      { year: 2017, month: 1, day: 1, hour: 1, minute: 29, second: 9, millisecond: 123 },
    ],
    [
      { $dateToParts: { date: date('2017-01-01T01:29:09.123Z'), iso8601: true } },
      { isoWeekYear: 2016, isoWeek: 52, isoDayOfWeek: 7, hour: 1, minute: 29, second: 9, millisecond: 123 },
    ],
    [
      { $dateToParts: { date: date('2017-01-01T01:29:09.123Z'), timezone: ZONE } },
      { year: 2016, month: 12, day: 31, hour: 20, minute: 29, second: 9, millisecond: 123 },
    ],
  ],
  $dateFromParts: [
    [{ $dateFromParts: { year: 2017, month: 2, day: 8, hour: 12 } }, date('2017-02-08T12:00:00Z')],
    [
      { $dateFromParts: { isoWeekYear: 2017, isoWeek: 6, isoDayOfWeek: 3, hour: 12 } },
      date('2017-02-08T12:00:00Z'),
    ],
    [
      {
        $dateFromParts: { year: 2016, month: 12, day: 31, hour: 23, minute: 46, second: 12, timezone: ZONE },
      },
      date('2017-01-01T04:46:12Z'),
    ],
    [{ $dateFromParts: { year: 2017, month: 14, day: 1, hour: 12 } }, date('2018-02-01T12:00:00Z')],
    [{ $dateFromParts: { year: 2017, month: 0, day: 1, hour: 12 } }, date('2016-12-01T12:00:00Z')],
    [{ $dateFromParts: { year: 2017, month: '$none' } }, null],
    [{ $dateFromParts: { month: 1 } }, fails(40516)],
  ],
  $dateFromString: [
    [{ $dateFromString: { dateString: '2017-02-08T12:10:40.787' } }, date('2017-02-08T12:10:40.787Z')],
    [
      { $dateFromString: { dateString: '2017-02-08T12:10:40.787', timezone: ZONE } },
      date('2017-02-08T17:10:40.787Z'),
    ],
    [{ $dateFromString: { dateString: '2017-02-08' } }, date('2017-02-08T00:00:00Z')],
    [{ $dateFromString: { dateString: '15-06-2018', format: '%d-%m-%Y' } }, date('2018-06-15T00:00:00Z')],
    [{ $dateFromString: { dateString: 'no date', onError: 'x' } }, 'x'],
    [{ $dateFromString: { dateString: null, onNull: 'y' } }, 'y'],
    [{ $dateFromString: { dateString: null } }, null],
    [{ $dateFromString: { dateString: 'no date' } }, fails(241)],
  ],
  $dateAdd: [
    [
      { $dateAdd: { startDate: date('2020-10-31T12:10:05Z'), unit: 'month', amount: 1 } },
      date('2020-11-30T12:10:05Z'),
    ],
    [
      { $dateAdd: { startDate: date('2020-12-31T12:10:05Z'), unit: 'month', amount: 2 } },
      date('2021-02-28T12:10:05Z'),
    ],
    [
      { $dateAdd: { startDate: date('2020-10-30T17:30:00Z'), unit: 'week', amount: -1 } },
      date('2020-10-23T17:30:00Z'),
    ],
    [
      { $dateAdd: { startDate: date('2021-03-13T17:00:00Z'), unit: 'day', amount: 1, timezone: ZONE } },
      date('2021-03-14T16:00:00Z'),
    ],
    [
      { $dateAdd: { startDate: date('2021-03-13T17:00:00Z'), unit: 'hour', amount: 24, timezone: ZONE } },
      date('2021-03-14T17:00:00Z'),
    ],
    [{ $dateAdd: { startDate: null, unit: 'day', amount: 1 } }, null],
    [{ $dateAdd: { startDate: AT, unit: 'age', amount: 1 } }, fails(9)],
  ],
  $dateSubtract: [
    [
      { $dateSubtract: { startDate: date('2020-10-31T12:10:05Z'), unit: 'month', amount: 1 } },
      date('2020-09-30T12:10:05Z'),
    ],
    [{ $dateSubtract: { startDate: AT, unit: 'quarter', amount: 1 } }, date('2013-10-01T08:15:39.736Z')],
  ],
  $dateDiff: [
    [
      {
        $dateDiff: {
          startDate: date('2021-01-01T23:59:00Z'),
          endDate: date('2021-01-02T00:01:00Z'),
          unit: 'day',
        },
      },
      long(1),
    ],
    [
      {
        $dateDiff: {
          startDate: date('2021-01-31T00:00:00Z'),
          endDate: date('2021-02-01T00:00:00Z'),
          unit: 'month',
        },
      },
      long(1),
    ],
    [
      {
        $dateDiff: {
          startDate: date('2021-02-26T00:00:00Z'),
          endDate: date('2021-03-01T00:00:00Z'),
          unit: 'week',
        },
      },
      long(1),
    ],
    [
      {
        $dateDiff: {
          startDate: date('2021-02-26T00:00:00Z'),
          endDate: date('2021-02-28T00:00:00Z'),
          unit: 'week',
          startOfWeek: 'monday',
        },
      },
      long(0),
    ],
    [
      {
        $dateDiff: {
          startDate: date('2021-01-02T00:00:00Z'),
          endDate: date('2020-12-31T00:00:00Z'),
          unit: 'year',
        },
      },
      long(-1),
    ],
    [{ $dateDiff: { startDate: AT, endDate: null, unit: 'day' } }, null],
  ],
  $dateTrunc: [
    [{ $dateTrunc: { date: date('2021-03-20T11:30:05Z'), unit: 'hour' } }, date('2021-03-20T11:00:00Z')],
    [
      { $dateTrunc: { date: date('2021-03-20T11:30:05Z'), unit: 'hour', binSize: 2 } },
      date('2021-03-20T10:00:00Z'),
    ],
    [{ $dateTrunc: { date: date('2021-03-20T11:30:05Z'), unit: 'week' } }, date('2021-03-14T00:00:00Z')],
    [
      { $dateTrunc: { date: date('2021-03-20T11:30:05Z'), unit: 'week', startOfWeek: 'friday' } },
      date('2021-03-19T00:00:00Z'),
    ],
    [{ $dateTrunc: { date: date('2021-03-20T11:30:05Z'), unit: 'quarter' } }, date('2021-01-01T00:00:00Z')],
    [
      { $dateTrunc: { date: date('2021-03-20T11:30:05Z'), unit: 'month', timezone: ZONE } },
      date('2021-03-01T05:00:00Z'),
    ],
    [{ $dateTrunc: { date: null, unit: 'day' } }, null],
  ],
  $tsSecond: [[{ $tsSecond: new Timestamp({ t: 1622731060, i: 3 }) }, long(1622731060)]],
  $tsIncrement: [[{ $tsIncrement: new Timestamp({ t: 1622731060, i: 3 }) }, long(3)]],
};

describe('operators on dates', () => {
  for (const [name, cases] of Object.entries(DATES))
    test(name, (t) => {
      const examples = new Examples(t);
      for (const each of cases) examples.check(each);
    });
});
