"""Does one run of a kernel stand for all its schedules, and for all its data?"""
