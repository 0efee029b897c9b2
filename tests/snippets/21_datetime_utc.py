import time
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

moment = datetime(2024, 2, 28, 23, 30, tzinfo=timezone.utc)
print(moment + timedelta(days=1), (moment + timedelta(hours=48)).strftime("%A %d %B %Y"))
print(time.tzname[0], datetime.fromtimestamp(0).isoformat())
print(moment.astimezone(ZoneInfo("Asia/Tokyo")).isoformat())
print(datetime.fromisoformat("2024-12-31T12:00:00+00:00").timetuple().tm_yday)
